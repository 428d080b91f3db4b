// Column statistics. The NumPy twin is src/rgld/_model/scaling.py.
#pragma once

#include <cstddef>
#include <cstdint>
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

// Of each column the values at some places of its sorted values, and for each the number of values that are not larger:
// (d, n_knots). The places increase and are below the number of rows. A NaN becomes -infinity.
void column_knots(const Matrix& X, const size_t* places, size_t n_knots, const Run& run, double* knots,
                  int64_t* counts);

}  // namespace rgld
