// Ranks: from a score to its place among the training scores, see rgld/_ranks.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace rgld {

// Knots (score, rank) with straight lines between them and a slow tail on either side.
struct Knots {
    std::vector<double> values, ranks;
};

// The knots of the sorted training scores: all distinct ones up to `exact_size`, else those beside the grid ranks.
template <class T>
Knots fit_knots(const std::vector<T>& sorted, size_t exact_size, const double* grid, size_t grid_size);

// The knots of at most `exact_size` training scores; then each score is replaced by its rank, in rank_unit: a whole
// number that a float holds.
Knots fit_knots_and_rank(float* scores, size_t n);

// Sorts by the bits of the numbers, one digit after the other; `buffer` is room for as many.
template <class T>
void radix_sort(std::vector<T>& values, std::vector<T>& buffer);

// What ranks are counted in, so that the ranks of training rows are whole numbers: 2n halves of a row.
double rank_unit(double n_rows);

// A frozen distribution. T is the type of the scores it is asked about: float for views, double for branches.
template <class T>
class Cdf {
  public:
    // At most kMostKnots.
    Cdf(const double* values, const double* ranks, size_t n_knots, double n_rows, double smallest_range);

    // sums[i] += rank of scores[i], in rank_unit
    void add_ranks(const T* scores, size_t n, double* sums) const;

  private:
    using Level = std::conditional_t<sizeof(T) == 4, uint32_t, double>;
    struct Knot {
        T value;
        Level level;  // rank in rank_unit
    };

    size_t bucket(T score) const;
    double tail_level(T score) const;

    // The knots are found by a table of buckets over the bits of (score - lowest): monotone in the score, fine where
    // the scores are dense and coarse in a long tail. Within a bucket, a binary search of a fixed number of steps, so
    // that nothing depends on a branch that cannot be foretold. Behind the last knot stand infinities for it to read.
    // Small numbers side by side: a lookup costs the cache lines it touches.
    std::vector<Knot> knots_;
    std::vector<uint16_t> starts_;  // knots in earlier buckets
    T lowest_, highest_;
    uint32_t lowest_key_ = 0, last_bucket_ = 0;
    int shift_ = 0;
    size_t first_step_ = 1;
    double rank_unit_, edge_, tail_unit_;
};

constexpr size_t kMostKnots = 65535;

extern template class Cdf<float>;
extern template class Cdf<double>;

// The mean of ranks counted in `unit`, rounded to 12 decimals: means that are equal on paper stay equal.
double mean_rank(double sum, size_t n_views, double unit);

}  // namespace rgld
