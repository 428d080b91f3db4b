// Ranks: from a score to its place among the training scores. The NumPy twin is src/rgld/_model/ranks.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace rgld {

constexpr size_t kMaxKnots = 65535;

// Ranks are counted in half rows, 2n of them, so that the ranks of training rows are whole numbers.
double rank_unit(double n_rows);

// A point of a distribution. Ranks between two knots lie on a straight line; beyond the knots there is a slow tail on
// either side. T is the type of the scores to rank: float for views, double for branches.
template <class T>
struct Knot {
    T value;
    std::conditional_t<sizeof(T) == 4, uint32_t, double> level;  // rank in rank_unit
};

// A copy of the scores for sorting. A NaN becomes the largest number, so that the copy has an order.
template <class T>
std::vector<T> comparable(const T* scores, size_t n);

// Sorts by the bits of the numbers, one digit after the other. Right for any bits: a NaN has a place as well. `buffer`
// is working memory.
template <class T>
void sort_values(std::vector<T>& values, std::vector<T>& buffer);

// The knots of the sorted training scores, which must not be NaN: all distinct ones up to `exact_size`, else those
// beside the grid ranks.
template <class T>
std::vector<Knot<T>> fit_knots(const std::vector<T>& sorted, size_t exact_size, const double* grid, size_t grid_size);

// Replaces each score by its level in the distribution of these scores, and returns the knots of that distribution: the
// same that fit_knots and Cdf::add_ranks give, if all distinct scores are knots. There are at most kMaxKnots scores, so
// that levels are exact in a float. If a score is not finite, returns no knots and leaves the scores as they are.
std::vector<Knot<float>> replace_by_levels(float* scores, size_t n);

// A frozen distribution. Its functions stay within their arrays for any scores, NaN included.
template <class T>
class Cdf {
  public:
    // 1 to kMaxKnots knots.
    Cdf(std::vector<Knot<T>> knots, double n_rows, double smallest_range);

    // sums[i] += rank of scores[i], in rank_unit
    void add_ranks(const T* scores, size_t n, double* sums) const;

    // Counts scores by where they lie: counts[2j + 1] += 1 at knot j, counts[2j] += 1 between it and the one before.
    // There are 2 * n_knots() + 1 counts.
    void count(const T* scores, size_t n, int64_t* counts) const;

    size_t n_knots() const { return n_knots_; }
    const Knot<T>& knot(size_t j) const { return knots_[j]; }

  private:
    size_t bucket(T score) const;
    // places[i] = number of knots at or below scores[i], for scores between the lowest and the highest knot
    void find(const T* scores, size_t n, uint32_t* places) const;
    double tail_level(T score) const;

    // A table of buckets over the bits of (score - lowest) finds the knots. The bits grow with the score; they are fine
    // where the scores are dense and coarse in a long tail. Within a bucket, a binary search takes a fixed number of
    // steps, so that the processor has no branch to predict. It may read beyond the last knot: infinities stand there.
    // The types are small because a lookup costs the cache lines it touches.
    std::vector<Knot<T>> knots_;
    size_t n_knots_;
    std::vector<uint16_t> starts_;  // knots in earlier buckets
    T lowest_, highest_;
    uint32_t lowest_key_ = 0, last_bucket_ = 0;
    int shift_ = 0;
    size_t first_step_ = 1;
    double rank_unit_, edge_, tail_unit_;
};

extern template class Cdf<float>;
extern template class Cdf<double>;

// How a view's scores are standardized: (x - center) / scale of the score. Where `smallest` is above 0, x is the
// logarithm of the score, or of `smallest` if the score is less.
struct Standard {
    float smallest, center, scale;
};

// Replaces each score by its logarithm, if this standard is one of logarithms.
void take_logarithms(const Standard& standard, float* scores, size_t n);

// The standard of all training scores: their mean and standard deviation. The logarithms must be taken already.
Standard fit_standard(const float* scores, size_t n, float smallest, double smallest_scale);

// sums[i] += standardized score, within bounds
struct Bounds {
    float low, high;
};
void add_standardized(const Standard& standard, Bounds bounds, const float* scores, size_t n, double* sums);

// The mean of ranks counted in `unit`, rounded to 12 decimals: means that are equal on paper stay equal.
double mean_rank(double sum, size_t n_views, double unit);

}  // namespace rgld
