// Counts of pairs of values, values at places of their order, inverses of triangles, partners of columns. The NumPy
// twins are `count_pairs`, `values_at`, `distances_at`, `sorted_rows`, `inverse_triangles` and `find_partners` of
// src/rgld/_kernels/numpy_kernels.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "parallel.h"

namespace rgld {

// Counts in how many rows value u of one column meets value v of another, for all values of C columns of n rows. The
// codes are (C, n), those of column c below sizes[c]. The counts are (W, W), where W is the sum of the sizes: the
// values of a column stand side by side. Where a column meets itself they stay 0.
void count_pairs(const uint8_t* codes, size_t n_rows, const std::vector<size_t>& sizes, const Run& run,
                 int32_t* counts);

// Returns the value at this place in the order of the values, whose own order changes. NaN comes last.
double value_at(std::vector<double>& values, size_t place);

// Sorts each of the rows, (n_rows, n). NaN comes last.
void sort_rows(double* rows, size_t n_rows, size_t n, const Run& run);

// Inverts a lower triangular matrix (n, n). What lies above the diagonal is not read, and is 0 in the inverse.
void invert_triangle(const double* triangle, size_t n, double* inverse);

// The features that explain a target, one by one the one that explains most of what those before it leave open, by the
// covariance of all n features; none is of the target's column.
struct PartnerRules {
    size_t max_partners;
    double min_gain;  // a partner explains at least this fraction of the variance that is left open
};
// Writes max_partners partners, or -1 where there are fewer. Returns the fraction of the target's standard deviation
// that they leave open.
double find_partners(const double* covariance, size_t n, size_t target, const int64_t* columns, PartnerRules rules,
                     int64_t* partners);

}  // namespace rgld
