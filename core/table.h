// The rows of a table, scaled, in blocks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels.h"
#include "parallel.h"
#include "ranks.h"

namespace rgld {

// A matrix (n, d) of float32 or float64 with any strides. It belongs to the caller, and another thread may change its
// values during a call: they are copied out by read_once, brought within bounds by clipped, and never read again for
// what depends on the copy. No index, count or loop bound may depend on a value that is read twice.
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

// Reads a value of the caller's exactly once: the compiler must not read it a second time instead of keeping it.
template <class T>
T read_once(const T* from) {
    return *static_cast<const volatile T*>(from);
}

// The value within [low, high]; low for a NaN.
template <class T>
T clipped(T value, T low, T high) {
    return std::min(high, std::max(low, value));
}

// Which scaled columns are used: one flag for each, or none if all are.
using Used = std::vector<uint8_t>;

// A fitted transformation of the columns. The NumPy twin is src/rgld/_model/scaling.py. One or several scalings of the
// d columns of a table stand side by side; each gives d columns.
struct Scaling {
    enum class Kind { kLinear, kArcsinh, kQuantile };

    size_t n_inputs;  // d
    std::vector<Kind> kinds;
    // One for each of the S * d scaled columns. A linear scaling gives (x - center) / scale, an arcsinh scaling gives
    // (arcsinh((x - center) / scale) - shift) / unit.
    std::vector<double> center, scale, shift, unit;
    // Scalings by quantiles: straight lines between the quantiles of a column and their normal scores.
    std::vector<Cdf<double>> curves;  // (d), or none
    double largest_value;             // scaled values are clipped to +- this

    size_t n_columns() const { return kinds.size() * n_inputs; }

    // Scales rows start .. start + count - 1: value (c, i) goes to columns[c * stride + i]. Zeros fill up the stride.
    // Columns that are not used are left as they are; all are used if `used` is empty.
    void apply(const Matrix& X, size_t start, size_t count, float* columns, size_t stride, const Used& used) const;
    // The same for one column c of the rows with these indices.
    void apply(const Matrix& X, size_t c, const int64_t* indices, size_t count, float* column, size_t stride) const;
};

// The curves of columns, given n quantiles of each. Their knots are the distinct quantiles with the normal scores of
// their levels; equal quantiles share the level in the middle. Levels stay half a step, 0.5 / n, away from 0 and 1.
std::vector<Cdf<double>> quantile_curves(const double* quantiles, size_t n_columns, size_t n);

// The rows of a table as blocks of scaled columns, d for each scaling. keep_scaled() scales them once, if they fit a
// budget; otherwise each call of columns() scales a block anew.
class Rows {
  public:
    Rows(Matrix X, const Scaling& scaling, size_t rows_per_block) : X_(X), scaling_(scaling), stride_(rows_per_block) {}

    // Scales all columns, or only those that are used.
    void keep_scaled(const Run& run, Used used = {});

    size_t n_rows() const { return X_.n_rows; }
    size_t n_columns() const { return scaling_.n_columns(); }
    size_t n_blocks() const { return (X_.n_rows + stride_ - 1) / stride_; }
    size_t first_row(size_t block) const { return block * stride_; }
    size_t n_rows(size_t block) const { return std::min(stride_, X_.n_rows - first_row(block)); }
    size_t stride() const { return stride_; }

    // The scaled columns of a block, with stride(). The buffer has n_columns() * stride() floats and holds the columns
    // that are used, unless they were kept.
    const float* columns(size_t block, float* buffer, const Used& used = {}) const;

    // Mean and standard deviation of every scaled column, over all rows; 0 for those that are not used.
    void moments(const Run& run, double* mean, double* std, const Used& used = {}) const;

    // Some columns of the rows with these indices, scaled.
    void take(const int64_t* indices, size_t count, const int32_t* features, size_t n_features, float* columns,
              size_t stride) const;

  private:
    Matrix X_;
    const Scaling& scaling_;
    // Whether the columns that are used were kept.
    bool has_kept(const Used& used) const;
    bool has_kept(size_t column) const { return kept_ && (kept_used_.empty() || kept_used_[column]); }

    size_t stride_;
    std::unique_ptr<float[]> kept_;
    Used kept_used_;
};

// Sums over blocks that come out the same for any number of threads: blocks are summed in runs, then the runs in their
// order. How many runs there are depends only on the number of blocks and the size of a sum, and is limited so that
// their sums fit into memory.
struct SumRuns {
    size_t n_blocks, length, count;

    SumRuns(size_t n_blocks, size_t size);
    size_t begin(size_t run) const { return run * length; }
    size_t end(size_t run) const { return std::min(n_blocks, (run + 1) * length); }
};

// Rows per block: as many as keep a block of scaled columns within the cache.
size_t rows_per_block(size_t n_rows, size_t n_columns);

double normal_quantile(double level);

}  // namespace rgld
