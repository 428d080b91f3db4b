#include "columns.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "ranks.h"

namespace rgld {
namespace {

constexpr size_t kSumBlock = 256;
constexpr size_t kGroupBytes = 32 * 1024 * 1024;  // columns are copied out of the table in groups
constexpr size_t kLargestGroup = 32;
constexpr size_t kFewValues = 8;  // that a column is sorted by counting

// sum of term(x) over the sorted values: blocks first, then the blocks, so that rounding does not grow with n.
template <class T, class Term>
double sum_of(const std::vector<T>& values, Term&& term) {
    double total = 0.0;
    for (size_t start = 0; start < values.size(); start += kSumBlock) {
        const size_t end = std::min(values.size(), start + kSumBlock);
        double lane[4] = {};
        size_t i = start;
        for (; i + 4 <= end; i += 4)
            for (size_t l = 0; l < 4; ++l) lane[l] += term(double(values[i + l]));
        for (; i < end; ++i) lane[0] += term(double(values[i]));
        total += (lane[0] + lane[1]) + (lane[2] + lane[3]);
    }
    return total;
}

// The quantile at step / n_steps, interpolated linearly. The places are whole numbers of steps, so that a quantile
// that falls on a value is that value to the bit.
template <class T>
double quantile(const std::vector<T>& sorted, size_t step, size_t n_steps) {
    const size_t n_gaps = sorted.size() - 1;
    const size_t low = n_steps ? step * n_gaps / n_steps : 0, rest = n_steps ? step * n_gaps % n_steps : 0;
    const double below = double(sorted[low]), above = double(sorted[std::min(low + 1, n_gaps)]);
    return below + (n_steps ? double(rest) / double(n_steps) : 0.0) * (above - below);
}

template <class T>
void statistics_of(const std::vector<T>& sorted, double* numbers, double* quantiles, size_t n_quantiles) {
    const double n = double(sorted.size()), lowest = double(sorted.front()), highest = double(sorted.back());
    for (size_t q = 0; q < n_quantiles; ++q) quantiles[q] = quantile(sorted, q, n_quantiles - 1);
    const double q25 = quantile(sorted, 1, 4), median = quantile(sorted, 2, 4), q75 = quantile(sorted, 3, 4);
    const double iqr = q75 - q25;

    // Squares and cubes near the ends of the float range overflow or vanish: the largest magnitude is the unit.
    // A power of two, so that nothing is rounded.
    const int exponent = std::ilogb(std::max(std::fabs(lowest), std::fabs(highest)));
    const double unit = lowest == 0.0 && highest == 0.0 ? 1.0 : std::ldexp(1.0, std::max(exponent, -1000));
    const double per_unit = 1.0 / unit;
    // The mean of equal values is that value, whatever the sum is rounded to: no spread out of nothing.
    const double mean = lowest == highest ? lowest * per_unit
                                          : sum_of(sorted, [=](double x) { return x * per_unit; }) / n;
    const double squares = sum_of(sorted, [=](double x) {
        const double deviation = x * per_unit - mean;
        return deviation * deviation;
    });
    const double cubes = sum_of(sorted, [=](double x) {
        const double deviation = x * per_unit - mean;
        return deviation * deviation * deviation;
    });
    const double variance = squares / n, cubed_std = std::pow(variance, 1.5);
    const double std = std::sqrt(variance) * unit;
    const double spread = iqr > 0.0 ? iqr : std > 0.0 ? std : 1.0;

    size_t n_distinct = 0, most_frequent = 0;
    for (size_t first = 0, i = 1; i <= sorted.size(); ++i) {
        if (i == sorted.size() || sorted[i] > sorted[i - 1]) {
            ++n_distinct;
            most_frequent = std::max(most_frequent, i - first);
            first = i;
        }
    }
    const double found[kColumnNumbers] = {mean * unit,
                                          std,
                                          median,
                                          iqr,
                                          highest - lowest,
                                          cubed_std > 0.0 ? cubes / n / cubed_std : 0.0,
                                          std::max(highest - median, median - lowest) / spread,
                                          double(n_distinct),
                                          double(most_frequent)};
    std::copy(found, found + kColumnNumbers, numbers);
}

// Sorts a column of few distinct values by counting them; false, and nothing done, for any other.
template <class T>
bool sort_few_values(std::vector<T>& column) {
    T distinct[kFewValues];
    size_t counts[kFewValues] = {}, n_distinct = 0;
    for (const T x : column) {
        size_t k = 0;
        while (k < n_distinct && distinct[k] != x) ++k;
        if (k == n_distinct) {
            if (n_distinct == kFewValues) return false;
            distinct[n_distinct++] = x;
        }
        ++counts[k];
    }
    auto to = column.begin();
    for (size_t done = 0; done < n_distinct; ++done) {
        const size_t k = size_t(std::min_element(distinct, distinct + n_distinct) - distinct);
        to = std::fill_n(to, counts[k], distinct[k]);
        distinct[k] = std::numeric_limits<T>::infinity();
    }
    return true;
}

template <class T>
void learn_columns(ColumnStatistics& statistics, const Matrix& X, double largest, const Run& run) {
    const size_t d = X.n_columns, n = X.n_rows;
    const T bound = T(std::min(largest, double(std::numeric_limits<T>::max())));
    const size_t group = std::min({kLargestGroup, std::max<size_t>(1, kGroupBytes / sizeof(T) / n), (d + 7) / 8});
    run_tasks(run, (d + group - 1) / group, [&](size_t task, size_t) {
        const size_t first = task * group, count = std::min(group, d - first);
        std::vector<std::vector<T>> columns(count, std::vector<T>(n));
        for (size_t i = 0; i < n; ++i)
            for (size_t c = 0; c < count; ++c)
                columns[c][i] = std::min(std::max(X.column<T>(first + c)[ptrdiff_t(i) * X.row_step], -bound), bound);
        std::vector<T> buffer;
        for (size_t c = 0; c < count; ++c) {
            if (!sort_few_values(columns[c])) radix_sort(columns[c], buffer);
            statistics_of(columns[c], statistics.numbers.data() + (first + c) * kColumnNumbers,
                          statistics.quantiles.data() + (first + c) * statistics.n_quantiles, statistics.n_quantiles);
        }
    });
}

}  // namespace

std::pair<float, float> middle_values(const float* values, size_t n) {
    // Buckets over the bits of the values, which order as they do: 128 to a factor of two, over 16 of these.
    constexpr size_t kBuckets = 2048;
    constexpr int kShift = 16;
    const auto bits = [](float value) {
        uint32_t key;
        std::memcpy(&key, &value, sizeof key);
        return key;
    };
    const uint32_t highest = bits(*std::max_element(values, values + n)) >> kShift;
    const uint32_t lowest = highest - std::min(highest, uint32_t(kBuckets - 1));
    uint32_t counts[kBuckets] = {};
    for (size_t i = 0; i < n; ++i) ++counts[std::max(bits(values[i]) >> kShift, lowest) - lowest];
    const size_t upper = n / 2, lower = (n - 1) / 2;
    uint32_t low = 0, high;
    size_t below = 0;
    while (below + counts[low] <= lower) below += counts[low++];
    size_t count = counts[low];
    for (high = low; below + count <= upper;) count += counts[++high];
    std::vector<float> middle(count + 1);  // one more for those that are passed over
    for (size_t i = 0, to = 0; i < n; ++i) {
        const uint32_t bucket = std::max(bits(values[i]) >> kShift, lowest) - lowest;
        middle[to] = values[i];
        to += bucket - low <= high - low;
    }
    middle.pop_back();
    const auto place = middle.begin() + ptrdiff_t(upper - below);
    std::nth_element(middle.begin(), place, middle.end());
    return {upper == lower ? *place : *std::max_element(middle.begin(), place), *place};
}

void ColumnStatistics::learn(const Matrix& X, double largest, const Run& run) {
    X.is_double ? learn_columns<double>(*this, X, largest, run) : learn_columns<float>(*this, X, largest, run);
}

}  // namespace rgld
