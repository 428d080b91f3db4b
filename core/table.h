// Raw rows, scaled, in blocks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels.h"
#include "parallel.h"
#include "ranks.h"

namespace rgld {

// A matrix (n, d) of float32 or float64 with any strides; belongs to the caller.
struct Matrix {
    const void* data;
    bool is_double;
    size_t n_rows, n_columns;
    ptrdiff_t row_step, column_step;  // in elements

    template <class T>
    const T* column(size_t c) const {
        return static_cast<const T*>(data) + ptrdiff_t(c) * column_step;
    }
};

// A fitted column-wise transformation, see rgld/_preprocess.py: one or several scalings of the d columns of a table side
// by side, each of d columns.
struct Scaling {
    enum class Kind { kLinear, kArcsinh, kQuantile };

    size_t n_inputs;  // d
    std::vector<Kind> kinds;
    // Of the S * d scaled columns. Linear: (x - center) / scale. Arcsinh: (arcsinh((x - center) / scale) - shift) / unit.
    std::vector<double> center, scale, shift, unit;
    // Straight lines between the quantiles of a column and their normal scores, for the scalings by quantiles.
    std::vector<Cdf<double>> curves;  // (d), or none
    double largest_value;             // scaled values are clipped here

    size_t n_columns() const { return kinds.size() * n_inputs; }

    // columns(c, i) for rows start .. start + count - 1; zeros up to the stride.
    void apply(const Matrix& X, size_t start, size_t count, float* columns, size_t stride) const;
    // The same of one column c, for the numbered rows.
    void apply(const Matrix& X, size_t c, const int64_t* rows, size_t count, float* column, size_t stride) const;
};

// The knots of a column's curve: distinct quantiles with the normal score of their level, in the middle of a run of
// equal ones. Levels stay half a step, 0.5 / n, away from 0 and 1.
Cdf<double> quantile_curve(const double* quantiles, size_t n);

// The rows of a table, read as blocks of scaled columns (d for each scaling): scaled once where all of them fit a budget and are wanted
// several times, else each time anew.
class Rows {
  public:
    Rows(Matrix X, const Scaling& scaling, size_t rows_per_block) : X_(X), scaling_(scaling), stride_(rows_per_block) {}

    void keep_scaled(const Run& run);

    size_t n_rows() const { return X_.n_rows; }
    size_t n_columns() const { return scaling_.n_columns(); }
    size_t n_blocks() const { return (X_.n_rows + stride_ - 1) / stride_; }
    size_t first_row(size_t block) const { return block * stride_; }
    size_t n_rows(size_t block) const { return std::min(stride_, X_.n_rows - first_row(block)); }
    size_t stride() const { return stride_; }

    // The scaled columns of a block, at stride(); in the buffer, of n_columns() * stride(), unless they were kept.
    const float* columns(size_t block, float* buffer) const;

    // Mean and standard deviation of every scaled column, over all rows.
    void moments(const Run& run, double* mean, double* std) const;

    // Some columns of the numbered rows, scaled.
    void take(const int64_t* rows, size_t count, const int32_t* features, size_t n_features, float* columns,
              size_t stride) const;

  private:
    Matrix X_;
    const Scaling& scaling_;
    size_t stride_;
    std::vector<float> kept_;
};

// Blocks are summed in runs whose number depends on their number and the size of a sum only, then the runs in their order:
// the same sums for any number of threads, and not too many of them held.
struct SumRuns {
    size_t n_blocks, length, count;

    SumRuns(size_t n_blocks, size_t size);
    size_t begin(size_t run) const { return run * length; }
    size_t end(size_t run) const { return std::min(n_blocks, (run + 1) * length); }
};

// Rows per block: as many as keep a block of scaled columns within a share of the cache.
size_t rows_per_block(size_t n_rows, size_t n_columns);

double normal_quantile(double level);

}  // namespace rgld
