// Column statistics, see rgld/_preprocess.py.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "parallel.h"
#include "table.h"

namespace rgld {

// mean, std, median, iqr, range, skewness, tail weight, distinct values, rows at the most frequent value
constexpr size_t kColumnNumbers = 9;

struct ColumnStatistics {
    size_t n_quantiles;
    std::vector<double> numbers;    // (d, kColumnNumbers)
    std::vector<double> quantiles;  // (d, n_quantiles)

    ColumnStatistics(size_t n_columns, size_t n_quantiles)
        : n_quantiles(n_quantiles), numbers(n_columns * kColumnNumbers), quantiles(n_columns * n_quantiles) {}

    // Values are clipped to +- largest.
    void learn(const Matrix& X, double largest, const Run& run);
};

// The two values in the middle; one and the same for an odd number of values. None may be negative.
std::pair<float, float> middle_values(const float* values, size_t n);

}  // namespace rgld
