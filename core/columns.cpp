#include "columns.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ranks.h"

namespace rgld {
namespace {

constexpr size_t kSumBlock = 256;
constexpr size_t kGroupBytes = 32 * 1024 * 1024;  // columns are copied out of the table in groups of this size
constexpr size_t kMaxGroup = 32;                  // columns

// Sums over sorted values. Blocks are summed first, then their sums: rounding does not grow with n. `add(x, a, b)` adds
// to two sums. A block of equal values has the sums of the block before it, if that holds the same value: most blocks
// of a column that is mostly 0.
struct TwoSums {
    double a = 0.0, b = 0.0;
};
template <class T, class Add>
TwoSums sums_of(const std::vector<T>& sorted, Add&& add) {
    TwoSums total, block;
    for (size_t start = 0; start < sorted.size(); start += kSumBlock) {
        const size_t end = std::min(sorted.size(), start + kSumBlock);
        if (start == 0 || end < start + kSumBlock || sorted[end - 1] != sorted[start - kSumBlock]) {
            double a[4] = {}, b[4] = {};
            size_t i = start;
            for (; i + 4 <= end; i += 4)
                for (size_t l = 0; l < 4; ++l) add(double(sorted[i + l]), a[l], b[l]);
            for (; i < end; ++i) add(double(sorted[i]), a[0], b[0]);
            block = {(a[0] + a[1]) + (a[2] + a[3]), (b[0] + b[1]) + (b[2] + b[3])};
        }
        total.a += block.a;
        total.b += block.b;
    }
    return total;
}

// The value at a part of the way from one place of the order to the next.
template <class T>
double between(const std::vector<T>& sorted, size_t low, double part) {
    const double below = double(sorted[low]), above = double(sorted[std::min(low + 1, sorted.size() - 1)]);
    return below + part * (above - below);
}

// The quantile at step / n_steps, interpolated linearly. Its place is computed in whole numbers, so that a quantile
// that falls on a value is that value to the bit.
template <class T>
double quantile(const std::vector<T>& sorted, size_t step, size_t n_steps) {
    const size_t n_gaps = sorted.size() - 1;
    return between(sorted, step * n_gaps / n_steps, double(step * n_gaps % n_steps) / double(n_steps));
}

// `count` quantiles, from the lowest value to the highest in even steps. A thousand of each column: their places are
// counted up, which takes less time than to divide.
template <class T>
void all_quantiles(const std::vector<T>& sorted, double* quantiles, size_t count) {
    const size_t n_gaps = sorted.size() - 1, n_steps = std::max<size_t>(count, 2) - 1;
    const size_t whole = n_gaps / n_steps, part = n_gaps % n_steps;
    for (size_t q = 0, low = 0, rest = 0; q < count; ++q, low += whole, rest += part) {
        if (rest >= n_steps) rest -= n_steps, ++low;
        quantiles[q] = between(sorted, low, double(rest) / double(n_steps));
    }
}

template <class T>
void statistics_of(const std::vector<T>& sorted, double* statistics, double* quantiles, size_t n_quantiles) {
    const double n = double(sorted.size()), lowest = double(sorted.front()), highest = double(sorted.back());
    all_quantiles(sorted, quantiles, n_quantiles);
    const double q25 = quantile(sorted, 1, 4), median = quantile(sorted, 2, 4), q75 = quantile(sorted, 3, 4);
    const double iqr = q75 - q25;

    // Squares and cubes of very large or small values leave the range of a double. Values are therefore counted in a
    // unit near the largest magnitude: a power of two, so that nothing is rounded.
    const int exponent = std::ilogb(std::max(std::fabs(lowest), std::fabs(highest)));
    const double unit = lowest == 0.0 && highest == 0.0 ? 1.0 : std::ldexp(1.0, std::max(exponent, -1000));
    const double per_unit = 1.0 / unit;
    // The mean of equal values is that value. Their rounded sum could differ from it and give a constant column a
    // spread.
    const double mean = lowest == highest
                            ? lowest * per_unit
                            : sums_of(sorted, [=](double x, double& sum, double&) { sum += x * per_unit; }).a / n;
    const auto [squares, cubes] = sums_of(sorted, [=](double x, double& square_sum, double& cube_sum) {
        const double deviation = x * per_unit - mean, square = deviation * deviation;
        square_sum += square;
        cube_sum += square * deviation;
    });
    const double variance = squares / n, cubed_std = std::pow(variance, 1.5);
    const double std = std::sqrt(variance) * unit;
    const double spread = iqr > 0.0 ? iqr : std > 0.0 ? std : 1.0;

    // No branch that depends on the values: in a column of whole numbers the processor would mispredict it.
    size_t n_distinct = 1, most_frequent = 1, n_equal = 1;
    for (size_t i = 1; i < sorted.size(); ++i) {
        if (i + kSumBlock < sorted.size() && sorted[i + kSumBlock] == sorted[i - 1]) {  // so are those between
            n_equal += kSumBlock;
            i += kSumBlock;
        }
        const bool is_new = sorted[i] > sorted[i - 1];
        n_distinct += is_new;
        n_equal = is_new ? 1 : n_equal + 1;
        most_frequent = std::max(most_frequent, n_equal);
    }
    const double found[kStatistics] = {mean * unit,
                                       std,
                                       median,
                                       iqr,
                                       highest - lowest,
                                       cubed_std > 0.0 ? cubes / n / cubed_std : 0.0,
                                       std::max(highest - median, median - lowest) / spread,
                                       double(n_distinct),
                                       double(most_frequent)};
    std::copy(found, found + kStatistics, statistics);
}

// Calls work(column, its values sorted) for every column. A NaN becomes -infinity.
template <class T, class Work>
void over_sorted_columns(const Matrix& X, const Run& run, Work&& work) {
    constexpr T kInfinity = std::numeric_limits<T>::infinity();
    const size_t d = X.n_columns, n = X.n_rows;
    const size_t group = std::min({kMaxGroup, std::max<size_t>(1, kGroupBytes / sizeof(T) / n), (d + 7) / 8});
    run_tasks(run, (d + group - 1) / group, [&](size_t task, size_t) {
        const size_t first = task * group, count = std::min(group, d - first);
        std::vector<std::vector<T>> columns(count, std::vector<T>(n));
        const T* from[kMaxGroup];
        T* to[kMaxGroup];
        for (size_t c = 0; c < count; ++c) from[c] = X.column<T>(first + c), to[c] = columns[c].data();
        for (size_t i = 0; i < n; ++i) {
            for (size_t c = 0; c < count; ++c) {
                const T value = read_once(from[c] + ptrdiff_t(i) * X.row_step);
                to[c][i] = value == value ? value : -kInfinity;
            }
        }
        std::vector<T> buffer;
        for (size_t c = 0; c < count; ++c) {
            sort_values(columns[c], buffer);
            work(first + c, columns[c]);
        }
    });
}

// Clips sorted values. (Those of nearly every column are in range.)
template <class T>
void clip_sorted(std::vector<T>& sorted, T largest) {
    for (auto value = sorted.begin(); value != sorted.end() && *value < -largest; ++value) *value = -largest;
    for (auto value = sorted.rbegin(); value != sorted.rend() && *value > largest; ++value) *value = largest;
}

template <class T>
void knots_of(const std::vector<T>& sorted, const std::vector<size_t>& places, double* values, int64_t* counts) {
    for (size_t k = 0, end = 0; k < places.size(); ++k) {
        const T value = sorted[places[k]];
        if (end <= places[k])
            for (end = places[k] + 1; end < sorted.size() && !(sorted[end] > value);) ++end;
        values[k] = double(value);
        counts[k] = int64_t(end);
    }
}

template <class T>
void learn_knots(ColumnKnots& learned, size_t c, const std::vector<T>& sorted) {
    const size_t start = c * learned.places.size();
    knots_of(sorted, learned.places, learned.values.data() + start, learned.counts.data() + start);
}

template <class T>
void learn_columns(ColumnStatistics& learned, const Matrix& X, double largest, ColumnKnots& knots, const Run& run) {
    const T bound = T(std::min(largest, double(std::numeric_limits<T>::max())));
    over_sorted_columns<T>(X, run, [&](size_t c, std::vector<T>& sorted) {
        learn_knots(knots, c, sorted);
        clip_sorted(sorted, bound);
        statistics_of(sorted, learned.statistics.data() + c * kStatistics,
                      learned.quantiles.data() + c * learned.n_quantiles, learned.n_quantiles);
    });
}

}  // namespace

void ColumnStatistics::learn(const Matrix& X, double largest, ColumnKnots& knots, const Run& run) {
    X.is_double ? learn_columns<double>(*this, X, largest, knots, run)
                : learn_columns<float>(*this, X, largest, knots, run);
}

void ColumnKnots::learn(const Matrix& X, const Run& run) {
    const auto of_column = [this](size_t c, const auto& sorted) { learn_knots(*this, c, sorted); };
    X.is_double ? over_sorted_columns<double>(X, run, of_column) : over_sorted_columns<float>(X, run, of_column);
}

}  // namespace rgld
