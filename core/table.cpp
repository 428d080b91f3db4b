#include "table.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace rgld {
namespace {

constexpr size_t kBlockFloats = 48 * 1024;        // 192 KiB of scaled columns
constexpr size_t kKeptFloats = 16 * 1024 * 1024;  // 64 MiB of scaled columns
constexpr size_t kSmallestBlock = 64, kLargestBlock = 2048;
constexpr size_t kMinSharedRows = 512, kBlocksPerRound = 4;  // more rows are worth several threads

constexpr size_t kTile = 256;             // rows that are scaled at a time
constexpr size_t kTileColumns = 8;        // columns that are read at a time: a cache line of doubles
constexpr double kLargestArcsinh = 1e18;  // the twin's LARGEST_ARCSINH

// Copies at most kTile rows of some columns out of the caller's matrix, row by row: values that stand side by side in
// memory are read together.
template <class RowOf>
void read_tiles(const Matrix& X, const size_t* columns, size_t n_columns, size_t count, RowOf&& row_of,
                double (*values)[kTile]) {
    const auto read = [&](auto zero) {
        const decltype(zero)* from[kTileColumns];
        for (size_t k = 0; k < n_columns; ++k) from[k] = X.column<decltype(zero)>(columns[k]);
        for (size_t i = 0; i < count; ++i) {
            const ptrdiff_t offset = ptrdiff_t(row_of(i)) * X.row_step;
            for (size_t k = 0; k < n_columns; ++k) values[k][i] = double(read_once(from[k] + offset));
        }
    };
    X.is_double ? read(0.0) : read(0.0f);
}

// A tile of one column, in any scaling. Of several arcsinh scalings with the same centre and scale, the arcsinh is
// computed once. Two different values, as flags have them, are scaled once for all rows.
class Tile {
  public:
    Tile(const double* values, size_t count) : rows_(values), n_rows_(count), values_(values), n_(count) {}

    // Writes what scaled column c holds for the rows: finite numbers, whatever the values are.
    void scale(const Scaling& s, size_t c, float* scaled) {
        // Looking for two values takes longer than a linear scaling of all.
        if (!has_looked_ && n_rows_ > kFewValues && s.kinds[c / s.n_inputs] != Scaling::Kind::kLinear) {
            has_looked_ = true;
            if (kernels().two_values(rows_, n_rows_, two_)) values_ = two_, n_ = 2;
        }
        if (n_ == n_rows_) return scale_values(s, c, scaled);
        float two[2];
        scale_values(s, c, two);
        kernels().choose(rows_, n_rows_, two_[1], two, scaled);
    }

  private:
    static constexpr size_t kFewValues = 8;

    void scale_values(const Scaling& s, size_t c, float* scaled) {
        const double center = s.center[c], scale = s.scale[c], largest = s.largest_value;
        switch (s.kinds[c / s.n_inputs]) {
            case Scaling::Kind::kLinear: {
                return kernels().scale(values_, n_, center, scale, largest, scaled);
            }
            case Scaling::Kind::kArcsinh: {
                if (!has_arcsinh_ || center != center_ || scale != scale_) take_arcsinh(center, scale);
                return kernels().scale(arcsinh_, n_, s.shift[c], s.unit[c], largest, scaled);
            }
            case Scaling::Kind::kQuantile: {
                const Cdf<double>& curve = s.curves[c % s.n_inputs];
                const double lowest = curve.knot(0).value, highest = curve.knot(curve.n_knots() - 1).value;
                double within[kTile], scores[kTile] = {};
                for (size_t i = 0; i < n_; ++i) within[i] = clipped(values_[i], lowest, highest);
                curve.add_ranks(within, n_, scores);
                for (size_t i = 0; i < n_; ++i) scaled[i] = float(scores[i]);
                return;
            }
        }
    }

    void take_arcsinh(double center, double scale) {
        for (size_t i = 0; i < n_; ++i)
            arcsinh_[i] = clipped((values_[i] - center) / scale, -kLargestArcsinh, kLargestArcsinh);
        kernels().arcsinh(arcsinh_, n_);
        has_arcsinh_ = true, center_ = center, scale_ = scale;
    }

    const double* rows_;
    size_t n_rows_;
    const double* values_;  // what is scaled: the values of the rows, or the two that they have
    size_t n_;
    double two_[2];
    bool has_looked_ = false, has_arcsinh_ = false;
    double center_ = 0.0, scale_ = 0.0;
    double arcsinh_[kTile];
};

}  // namespace

void Scaling::apply(const Matrix& X, size_t start, size_t count, float* columns, size_t stride,
                    const Used& used) const {
    const auto is_used = [&](size_t c) { return used.empty() || used[c]; };
    std::vector<size_t> inputs;  // of which a scaled column is used
    for (size_t j = 0; j < n_inputs; ++j) {
        size_t c = j;
        while (c < n_columns() && !is_used(c)) c += n_inputs;
        if (c < n_columns()) inputs.push_back(j);
    }
    // A few rows at a time, so that their values are still in the cache when the next columns are read.
    double values[kTileColumns][kTile];
    for (size_t first = 0; first < count; first += kTile) {
        const size_t n = std::min(kTile, count - first);
        for (size_t place = 0; place < inputs.size(); place += kTileColumns) {
            const size_t size = std::min(kTileColumns, inputs.size() - place);
            read_tiles(X, inputs.data() + place, size, n, [&](size_t i) { return start + first + i; }, values);
            for (size_t k = 0; k < size; ++k) {
                Tile tile(values[k], n);
                for (size_t c = inputs[place + k]; c < n_columns(); c += n_inputs)
                    if (is_used(c)) tile.scale(*this, c, columns + c * stride + first);
            }
        }
    }
    for (size_t c = 0; c < n_columns(); ++c) std::fill(columns + c * stride + count, columns + (c + 1) * stride, 0.0f);
}

void Scaling::apply(const Matrix& X, size_t c, const int64_t* indices, size_t count, float* column,
                    size_t stride) const {
    const size_t input = c % n_inputs;
    double values[1][kTile];
    for (size_t first = 0; first < count; first += kTile) {
        const size_t n = std::min(kTile, count - first);
        read_tiles(X, &input, 1, n, [&](size_t i) { return size_t(indices[first + i]); }, values);
        Tile(values[0], n).scale(*this, c, column + first);
    }
    std::fill(column + count, column + stride, 0.0f);
}

std::vector<Cdf<double>> quantile_curves(const double* quantiles, size_t n_columns, size_t n) {
    const double end = 0.5 / double(n), n_steps = double(std::max<size_t>(1, n - 1));
    // Twice the level, in steps, is a whole number. The columns have most levels in common.
    std::vector<double> scores(2 * n - 1, std::numeric_limits<double>::quiet_NaN());
    std::vector<Cdf<double>> curves;
    curves.reserve(n_columns);
    for (size_t c = 0; c < n_columns; ++c, quantiles += n) {
        std::vector<Knot<double>> knots;
        for (size_t first = 0, last; first < n; first = last) {
            for (last = first + 1; last < n && quantiles[last] == quantiles[first];) ++last;
            const size_t twice = first + last - 1;
            double& score = scores[twice];
            if (std::isnan(score))
                score = normal_quantile(std::min(std::max(0.5 * double(twice) / n_steps, end), 1.0 - end));
            knots.push_back({quantiles[first], score});
        }
        curves.emplace_back(std::move(knots), double(n), 1.0);
    }
    return curves;
}

size_t rows_per_block(size_t n_rows, size_t n_columns) {
    const size_t most = kBlockFloats / std::max<size_t>(n_columns, 1) / kPack * kPack;
    const size_t limit = std::min(std::max(most, kSmallestBlock), kLargestBlock);
    // Blocks of one size, and as many as two or four threads can divide evenly.
    const size_t n_limits = std::max<size_t>((n_rows + limit - 1) / limit, 1);
    const size_t n_blocks = padded(n_limits, n_rows > kMinSharedRows ? kBlocksPerRound : 1);
    return padded((n_rows + n_blocks - 1) / n_blocks, kPack);
}

void Rows::keep_scaled(const Run& run, Used used) {
    const size_t size = n_columns() * stride_;
    if (size * n_blocks() > kKeptFloats) return;
    std::unique_ptr<float[]> kept(new float[size * n_blocks()]);  // written before they are read
    run_tasks(run, n_blocks(), [&](size_t block, size_t) { columns(block, kept.get() + block * size, used); });
    kept_ = std::move(kept), kept_used_ = std::move(used);
}

bool Rows::has_kept(const Used& used) const {
    if (!kept_ || kept_used_.empty()) return bool(kept_);
    if (used.empty()) return false;
    for (size_t c = 0; c < n_columns(); ++c)
        if (used[c] && !kept_used_[c]) return false;
    return true;
}

const float* Rows::columns(size_t block, float* buffer, const Used& used) const {
    if (has_kept(used)) return kept_.get() + block * n_columns() * stride_;
    scaling_.apply(X_, first_row(block), n_rows(block), buffer, stride_, used);
    return buffer;
}

SumRuns::SumRuns(size_t n_blocks, size_t size) : n_blocks(n_blocks) {
    constexpr size_t kPartialDoubles = 8 * 1024 * 1024;  // 64 MiB of partial sums
    constexpr size_t kMaxRuns = 256;
    const size_t max_runs = std::min(kMaxRuns, std::max<size_t>(1, kPartialDoubles / size));
    length = (n_blocks + max_runs - 1) / max_runs;
    count = (n_blocks + length - 1) / length;
}

void Rows::moments(const Run& run, double* mean, double* std, const Used& used) const {
    constexpr size_t kTogether = 4;  // columns: each addition has to wait for the one before of its column
    const size_t n = n_columns(), size = 2 * n;
    const SumRuns runs(n_blocks(), size);
    std::vector<size_t> asked;
    for (size_t c = 0; c < n; ++c)
        if (used.empty() || used[c]) asked.push_back(c);
    std::vector<double> partial(runs.count * size);
    run_tasks(run, runs.count, [&](size_t part, size_t) {
        std::vector<float> buffer(n * stride_);
        double* sums = partial.data() + part * size;
        for (size_t block = runs.begin(part); block < runs.end(part); ++block) {
            const float* values = columns(block, buffer.data(), used);
            for (size_t place = 0; place < asked.size(); place += kTogether) {
                const size_t count = std::min(kTogether, asked.size() - place);
                const float* from[kTogether];
                for (size_t k = 0; k < kTogether; ++k)
                    from[k] = values + asked[place + std::min(k, count - 1)] * stride_;
                double sum[kTogether] = {}, squares[kTogether] = {};
                for (size_t i = 0; i < n_rows(block); ++i) {
                    for (size_t k = 0; k < kTogether; ++k) {
                        const double x = double(from[k][i]);
                        sum[k] += x;
                        squares[k] += x * x;
                    }
                }
                for (size_t k = 0; k < count; ++k) {
                    sums[asked[place + k]] += sum[k];
                    sums[n + asked[place + k]] += squares[k];
                }
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

void Rows::take(const int64_t* indices, size_t count, const int32_t* features, size_t n_features, float* columns,
                size_t stride) const {
    std::vector<size_t> place(kept_ ? count : 0);
    for (size_t i = 0; i < place.size(); ++i)
        place[i] = size_t(indices[i]) / stride_ * n_columns() * stride_ + size_t(indices[i]) % stride_;
    for (size_t j = 0; j < n_features; ++j) {
        const size_t c = size_t(features[j]);
        float* to = columns + j * stride;
        if (!has_kept(c)) {
            scaling_.apply(X_, c, indices, count, to, stride);
            continue;
        }
        const float* from = kept_.get() + c * stride_;
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
    static const double c[8] = {1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                                3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
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
