// Column statistics. The NumPy twin is src/rgld/_model/scaling.py.
#pragma once

#include <cstddef>
#include <vector>

#include "parallel.h"
#include "table.h"

namespace rgld {

// The statistics of a column are its mean, std, median, iqr, range, skewness, tail weight, number of distinct values,
// and number of rows with the most frequent value.
constexpr size_t kStatistics = 9;

struct ColumnStatistics {
    size_t n_quantiles;
    std::vector<double> statistics;  // (d, kStatistics)
    std::vector<double> quantiles;   // (d, n_quantiles)

    ColumnStatistics(size_t n_columns, size_t n_quantiles)
        : n_quantiles(n_quantiles), statistics(n_columns * kStatistics), quantiles(n_columns * n_quantiles) {}

    // Values are clipped to +- largest.
    void learn(const Matrix& X, double largest, const Run& run);
};

// The columns of a matrix of T, each sorted: (d, n). A NaN becomes -infinity.
template <class T>
void sort_columns(const Matrix& X, const Run& run, T* sorted);

}  // namespace rgld
