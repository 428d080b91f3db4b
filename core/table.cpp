#include "table.h"

#include <algorithm>
#include <cmath>

namespace rgld {
namespace {

constexpr size_t kBlockFloats = 48 * 1024;  // 192 KiB of scaled columns
constexpr size_t kKeptFloats = 16 * 1024 * 1024;  // 64 MiB of scaled columns
constexpr size_t kSmallestBlock = 64, kLargestBlock = 2048;
constexpr size_t kShareableRows = 512, kEvenShares = 4;

constexpr size_t kTile = 64;  // rows that are scaled at a time
constexpr double kLargestArcsinh = 1e18;  // beyond, there is no difference left

struct Range {
    size_t start;
    size_t operator[](size_t i) const { return start + i; }
};

// Some of numbered rows.
template <class Numbers>
struct Part {
    const Numbers& rows;
    size_t start;
    size_t operator[](size_t i) const { return size_t(rows[start + i]); }
};

// Calls work(part of the rows, start, size) for a few rows at a time.
template <class Numbers, class Work>
void in_tiles(const Numbers& rows, size_t count, Work&& work) {
    for (size_t start = 0; start < count; start += kTile)
        work(Part<Numbers>{rows, start}, start, std::min(kTile, count - start));
}

// Calls to(i, x) with the numbered rows' values of a column.
template <class Numbers, class To>
void read_column(const Matrix& X, size_t c, const Numbers& rows, size_t count, To&& to) {
    const auto read = [&](const auto* from) {
        for (size_t i = 0; i < count; ++i) to(i, double(from[ptrdiff_t(rows[i]) * X.row_step]));
    };
    X.is_double ? read(X.column<double>(c)) : read(X.column<float>(c));
}

template <class Numbers>
void scale_column(const Scaling& s, const Matrix& X, size_t c, const Numbers& rows, size_t count, float* to) {
    const size_t column = c % s.n_inputs;
    const double center = s.center[c], scale = s.scale[c], shift = s.shift[c], unit = s.unit[c];
    const double largest = s.largest_value;
    switch (s.kinds[c / s.n_inputs]) {
        case Scaling::Kind::kLinear:
            return read_column(X, column, rows, count, [=](size_t i, double x) {
                to[i] = float(std::min(std::max((x - center) / scale, -largest), largest));
            });
        case Scaling::Kind::kArcsinh:
            return in_tiles(rows, count, [&](const auto& part, size_t start, size_t n) {
                double values[kTile];
                read_column(X, column, part, n, [&](size_t i, double x) {
                    values[i] = std::min(std::max((x - center) / scale, -kLargestArcsinh), kLargestArcsinh);
                });
                kernels().arcsinh(values, n);
                for (size_t i = 0; i < n; ++i)
                    to[start + i] = float(std::min(std::max((values[i] - shift) / unit, -largest), largest));
            });
        case Scaling::Kind::kQuantile: {
            const Cdf<double>& curve = s.curves[column];
            const double lowest = curve.knot(0).value, highest = curve.knot(curve.n_knots() - 1).value;
            return in_tiles(rows, count, [&](const auto& part, size_t start, size_t n) {
                double values[kTile], scores[kTile] = {};
                read_column(X, column, part, n,
                            [&](size_t i, double x) { values[i] = std::min(std::max(x, lowest), highest); });
                curve.add_ranks(values, n, scores);
                for (size_t i = 0; i < n; ++i) to[start + i] = float(scores[i]);
            });
        }
    }
}

}  // namespace

void Scaling::apply(const Matrix& X, size_t start, size_t count, float* columns, size_t stride) const {
    // A few rows at a time: all columns of them are in the cache when the next column is read.
    for (size_t tile = 0; tile < count; tile += kTile)
        for (size_t c = 0; c < n_columns(); ++c)
            scale_column(*this, X, c, Range{start + tile}, std::min(kTile, count - tile), columns + c * stride + tile);
    for (size_t c = 0; c < n_columns(); ++c) std::fill(columns + c * stride + count, columns + (c + 1) * stride, 0.0f);
}

void Scaling::apply(const Matrix& X, size_t c, const int64_t* rows, size_t count, float* column, size_t stride) const {
    scale_column(*this, X, c, rows, count, column);
    std::fill(column + count, column + stride, 0.0f);
}

Cdf<double> quantile_curve(const double* quantiles, size_t n) {
    const double end = 0.5 / double(n);
    std::vector<Knot<double>> knots;
    for (size_t first = 0, last; first < n; first = last) {
        for (last = first + 1; last < n && quantiles[last] == quantiles[first];) ++last;
        const double level = 0.5 * double(first + last - 1) / double(std::max<size_t>(1, n - 1));
        knots.push_back({quantiles[first], normal_quantile(std::min(std::max(level, end), 1.0 - end))});
    }
    return Cdf<double>(std::move(knots), double(n), 1.0);
}

size_t rows_per_block(size_t n_rows, size_t n_columns) {
    const size_t most = kBlockFloats / std::max<size_t>(n_columns, 1) / kPack * kPack;
    const size_t limit = std::min(std::max(most, kSmallestBlock), kLargestBlock);
    // Blocks of one size, in numbers that a few threads can share evenly.
    const size_t n_limits = std::max<size_t>((n_rows + limit - 1) / limit, 1);
    const size_t n_blocks = padded(n_limits, n_rows > kShareableRows ? kEvenShares : 1);
    return padded((n_rows + n_blocks - 1) / n_blocks, kPack);
}

void Rows::keep_scaled(const Run& run) {
    const size_t size = n_columns() * stride_;
    if (size * n_blocks() > kKeptFloats) return;
    std::vector<float> kept(size * n_blocks());
    run_tasks(run, n_blocks(), [&](size_t block, size_t) { columns(block, kept.data() + block * size); });
    kept_ = std::move(kept);
}

const float* Rows::columns(size_t block, float* buffer) const {
    if (!kept_.empty()) return kept_.data() + block * n_columns() * stride_;
    scaling_.apply(X_, first_row(block), n_rows(block), buffer, stride_);
    return buffer;
}

SumRuns::SumRuns(size_t n_blocks, size_t size) : n_blocks(n_blocks) {
    constexpr size_t kPartialDoubles = 8 * 1024 * 1024;  // 64 MiB of partial sums
    constexpr size_t kMostRuns = 256;
    const size_t most = std::min(kMostRuns, std::max<size_t>(1, kPartialDoubles / size));
    length = (n_blocks + most - 1) / most;
    count = (n_blocks + length - 1) / length;
}

void Rows::moments(const Run& run, double* mean, double* std) const {
    const size_t n = n_columns(), size = 2 * n;
    const SumRuns runs(n_blocks(), size);
    std::vector<double> partial(runs.count * size);
    run_tasks(run, runs.count, [&](size_t part, size_t) {
        std::vector<float> buffer(n * stride_);
        double* sums = partial.data() + part * size;
        for (size_t block = runs.begin(part); block < runs.end(part); ++block) {
            const float* values = columns(block, buffer.data());
            for (size_t c = 0; c < n; ++c) {
                double sum = 0.0, squares = 0.0;
                for (size_t i = 0; i < n_rows(block); ++i) {
                    const double x = double(values[c * stride_ + i]);
                    sum += x;
                    squares += x * x;
                }
                sums[c] += sum;
                sums[n + c] += squares;
            }
        }
    });
    for (size_t part = 1; part < runs.count; ++part)
        for (size_t i = 0; i < size; ++i) partial[i] += partial[part * size + i];
    for (size_t c = 0; c < n; ++c) {
        mean[c] = partial[c] / double(n_rows());
        std[c] = std::sqrt(std::max(partial[n + c] / double(n_rows()) - mean[c] * mean[c], 0.0));
    }
}

void Rows::take(const int64_t* rows, size_t count, const int32_t* features, size_t n_features, float* columns,
                size_t stride) const {
    std::vector<size_t> place(kept_.empty() ? 0 : count);
    for (size_t i = 0; i < place.size(); ++i)
        place[i] = size_t(rows[i]) / stride_ * n_columns() * stride_ + size_t(rows[i]) % stride_;
    for (size_t j = 0; j < n_features; ++j) {
        const size_t c = size_t(features[j]);
        float* to = columns + j * stride;
        if (kept_.empty()) {
            scaling_.apply(X_, c, rows, count, to, stride);
            continue;
        }
        const float* from = kept_.data() + c * stride_;
        for (size_t i = 0; i < count; ++i) to[i] = from[place[i]];
        std::fill(to + count, to + stride, 0.0f);
    }
}

// Wichura's algorithm AS 241 (PPND16), about 1e-16 relative.
double normal_quantile(double level) {
    const auto ratio = [](double r, const double (&p)[8], const double (&q)[8]) {
        double top = p[7], bottom = q[7];
        for (int i = 6; i >= 0; --i) {
            top = top * r + p[i];
            bottom = bottom * r + q[i];
        }
        return top / bottom;
    };
    static const double a[8] = {3.3871328727963666080e0,  1.3314166789178437745e+2, 1.9715909503065514427e+3,
                                1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
                                3.3430575583588128105e+4, 2.5090809287301226727e+3};
    static const double b[8] = {1.0,
                                4.2313330701600911252e+1,
                                6.8718700749205790830e+2,
                                5.3941960214247511077e+3,
                                2.1213794301586595867e+4,
                                3.9307895800092710610e+4,
                                2.8729085735721942674e+4,
                                5.2264952788528545610e+3};
    static const double c[8] = {1.42343711074968357734e0,  4.63033784615654529590e0,  5.76949722146069140550e0,
                                3.64784832476320460504e0,  1.27045825245236838258e0,  2.41780725177450611770e-1,
                                2.27238449892691845833e-2, 7.74545014278341407640e-4};
    static const double d[8] = {1.0,
                                2.05319162663775882187e0,
                                1.67638483018380384940e0,
                                6.89767334985100004550e-1,
                                1.48103976427480074590e-1,
                                1.51986665636164571966e-2,
                                5.47593808499534494600e-4,
                                1.05075007164441684324e-9};
    static const double e[8] = {6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,
                                2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                2.71155556874348757815e-5, 2.01033439929228813265e-7};
    static const double f[8] = {1.0,
                                5.99832206555887937690e-1,
                                1.36929880922735805310e-1,
                                1.48753612908506148525e-2,
                                7.86869131145613259100e-4,
                                1.84631831751005468180e-5,
                                1.42151175831644588870e-7,
                                2.04426310338993978564e-15};
    const double q = level - 0.5;
    if (std::fabs(q) <= 0.425) return q * ratio(0.180625 - q * q, a, b);
    const double r = std::sqrt(-std::log(q < 0.0 ? level : 1.0 - level));
    const double x = r <= 5.0 ? ratio(r - 1.6, c, d) : ratio(r - 5.0, e, f);
    return q < 0.0 ? -x : x;
}

}  // namespace rgld
