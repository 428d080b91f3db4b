// Ranks: from a score to its place among the training scores, see rgld/_ranks.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace rgld {

constexpr size_t kMostKnots = 65535;

// What ranks are counted in, so that the ranks of training rows are whole numbers: 2n halves of a row.
double rank_unit(double n_rows);

// A point of a distribution: straight lines between them, a slow tail on either side. T is the type of the scores that
// the distribution is asked about: float for views, double for branches.
template <class T>
struct Knot {
    T value;
    std::conditional_t<sizeof(T) == 4, uint32_t, double> level;  // rank in rank_unit
};

// The knots of the sorted training scores: all distinct ones up to `exact_size`, else those beside the grid ranks.
template <class T>
std::vector<Knot<T>> fit_knots(const std::vector<T>& sorted, size_t exact_size, const double* grid, size_t grid_size);

// All knots of at most kMostKnots training scores; each score is then replaced by its level, a whole number that a float
// holds. The buffers are room for n.
struct Placed {
    float score;
    uint32_t row;
};
std::vector<Knot<float>> fit_knots_and_rank(float* scores, size_t n, std::vector<Placed>& sorted,
                                            std::vector<uint16_t>& buckets);

// Sorts by the bits of the numbers, one digit after the other; `buffer` is room for as many.
template <class T>
void radix_sort(std::vector<T>& values, std::vector<T>& buffer);

// A frozen distribution.
template <class T>
class Cdf {
  public:
    // At most kMostKnots.
    Cdf(std::vector<Knot<T>> knots, double n_rows, double smallest_range);

    // sums[i] += rank of scores[i], in rank_unit
    void add_ranks(const T* scores, size_t n, double* sums) const;

    // Counts scores by where they lie: counts[2j + 1] += 1 at knot j, counts[2j] += 1 between it and the one before.
    void count(const T* scores, size_t n, int64_t* counts) const;

    size_t n_knots() const { return n_knots_; }
    const Knot<T>& knot(size_t j) const { return knots_[j]; }

  private:
    size_t bucket(T score) const;
    // places[i] = number of knots at or below the score, which must not be beyond them
    void find(const T* scores, size_t n, uint32_t* places) const;
    double tail_level(T score) const;

    // The knots are found by a table of buckets over the bits of (score - lowest): monotone in the score, fine where
    // the scores are dense and coarse in a long tail. Within a bucket, a binary search of a fixed number of steps, so
    // that nothing depends on a branch that cannot be foretold. Behind the last knot stand infinities for it to read.
    // Small numbers side by side: a lookup costs the cache lines it touches.
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

// How a view's scores are standardized: (x - center) / scale of the score, or of its logarithm where `smallest`, the
// least score to take one of, is above 0.
struct Standard {
    float smallest, center, scale;
};

// Replaces each score by what is standardized of it.
void take_logarithms(const Standard& standard, float* scores, size_t n);

// The standard of all training scores, whose logarithms were taken: their mean and standard deviation.
Standard fit_standard(const float* scores, size_t n, float smallest, double smallest_scale);

// sums[i] += standardized score, within bounds
struct Bounds {
    float low, high;
};
void add_standardized(const Standard& standard, Bounds bounds, const float* scores, size_t n, double* sums);

// The mean of ranks counted in `unit`, rounded to 12 decimals: means that are equal on paper stay equal.
double mean_rank(double sum, size_t n_views, double unit);

}  // namespace rgld
