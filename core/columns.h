// Column statistics. The NumPy twin is src/rgld/_model/scaling.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "parallel.h"
#include "table.h"

namespace rgld {

// The statistics of a column are its mean, std, median, iqr, range, skewness, tail weight, number of distinct values,
// and number of rows with the most frequent value.
constexpr size_t kStatistics = 9;

// Of each column the values at some places of its sorted values, and for each the number of values that are not larger.
// A NaN becomes -infinity.
struct ColumnKnots {
    std::vector<size_t> places;   // they increase, and are below the number of rows
    std::vector<double> values;   // (d, places)
    std::vector<int64_t> counts;  // (d, places)

    ColumnKnots(size_t n_columns, std::vector<size_t> places)
        : places(std::move(places)), values(n_columns * this->places.size()), counts(values.size()) {}

    void learn(const Matrix& X, const Run& run);
};

struct ColumnStatistics {
    size_t n_quantiles;
    std::vector<double> statistics;  // (d, kStatistics)
    std::vector<double> quantiles;   // (d, n_quantiles)

    ColumnStatistics(size_t n_columns, size_t n_quantiles)
        : n_quantiles(n_quantiles), statistics(n_columns * kStatistics), quantiles(n_columns * n_quantiles) {}

    // Values are clipped to +- largest. The knots, of values that are not, are learned from the same sorted columns.
    void learn(const Matrix& X, double largest, ColumnKnots& knots, const Run& run);
};

}  // namespace rgld
