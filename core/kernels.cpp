// The kernels of one instruction set: compiled once for each, with RGLD_NAMESPACE and RGLD_LANES given by the build.
// Nothing here may call an inline function of the standard library: the linker keeps one copy of it, which could be the
// one compiled here, with instructions that another processor does not have.
#include "kernels.h"
#include "vec.h"

namespace RGLD_NAMESPACE {
namespace {

using rgld::GlobalView;
using rgld::kBatch;
using rgld::kLargestForm;
using rgld::kLeveragePacks;
using rgld::kPack;
using rgld::kRootRows;
using rgld::kSumRows;
using rgld::LeverageView;

// ---- choice

RGLD_INLINE Floats chosen(Ints mask, Floats yes, Floats no) {
    return (Floats)((mask & (Ints)yes) | (~mask & (Ints)no));
}
RGLD_INLINE Doubles chosen(Longs mask, Doubles yes, Doubles no) {
    return (Doubles)((mask & (Longs)yes) | (~mask & (Longs)no));
}

// ---- projection

// Computes `Tile` outputs of some vectors of rows at a time: they stay in registers during one loop over the features.
// Each sum waits for its last addition, so that fewer than about eight at a time would leave the processor idle.
template <bool Fused, int Tile>
void project_tile(const float* columns, size_t stride, size_t n_rows, const int32_t* features, size_t n_features,
                  const float* projection, size_t n_out, float* out, size_t out_stride) {
    constexpr int kVectors = Tile <= 5 && 2 * kLanes <= int(kPack) ? 2 : 1;
    for (size_t i = 0; i < n_rows; i += kVectors * kLanes) {
        Floats sum[Tile][kVectors] = {};
        for (size_t j = 0; j < n_features; ++j) {
            const float *from = columns + size_t(features[j]) * stride + i, *row = projection + j * n_out;
            Floats x[kVectors];
            for (int v = 0; v < kVectors; ++v) x[v] = load<Floats>(from + v * kLanes);
            for (int c = 0; c < Tile; ++c)
                for (int v = 0; v < kVectors; ++v)
                    sum[c][v] = Fused ? fused(x[v], splat(row[c]), sum[c][v]) : sum[c][v] + x[v] * row[c];
        }
        for (int c = 0; c < Tile; ++c)
            for (int v = 0; v < kVectors; ++v) store(out + size_t(c) * out_stride + i + v * kLanes, sum[c][v]);
    }
}

template <bool Fused>
void project(const float* columns, size_t stride, size_t n_rows, const int32_t* features, size_t n_features,
             const float* projection, size_t n_out, float* out, size_t out_stride) {
    for (size_t c = 0, left = n_out; left > 0; left = n_out - c) {
        const float* from = projection + c;
        float* to = out + c * out_stride;
        if (kLanes == 16 && left == 10) {
            project_tile<Fused, 10>(columns, stride, n_rows, features, n_features, from, n_out, to, out_stride);
            c += 10;
        } else if (left >= 8 && left != 10) {
            project_tile<Fused, 8>(columns, stride, n_rows, features, n_features, from, n_out, to, out_stride);
            c += 8;
        } else if (left >= 5) {
            project_tile<Fused, 5>(columns, stride, n_rows, features, n_features, from, n_out, to, out_stride);
            c += 5;
        } else if (left >= 2) {
            project_tile<Fused, 2>(columns, stride, n_rows, features, n_features, from, n_out, to, out_stride);
            c += 2;
        } else {
            project_tile<Fused, 1>(columns, stride, n_rows, features, n_features, from, n_out, to, out_stride);
            c += 1;
        }
    }
}

void squared_distances(const float* z, size_t stride, size_t n_dims, size_t step, size_t n_rows, float* squared) {
    for (size_t i = 0; i < n_rows; i += kPack) {
        Floats sum[kPack / kLanes] = {};
        for (size_t c = 0; c < n_dims; ++c) {
            const float* from = z + c * stride + i;
            for (size_t p = 0; p < kPack / kLanes; ++p) {
                const Floats difference = load<Floats>(from + p * kLanes) - load<Floats>(from + step + p * kLanes);
                sum[p] += difference * difference;
            }
        }
        for (size_t p = 0; p < kPack / kLanes; ++p) store(squared + i + p * kLanes, sum[p]);
    }
}

// ---- sine and cosine

struct CosSin {
    Floats cos, sin;
};

// Reduces an angle to [-pi/4, pi/4]: angle = quarters * pi/2 + rest. In float64, because far rows have large angles.
RGLD_INLINE void reduce(Floats angle, Floats& rest, Ints& quarters) {
    HalfFloats angles[2], rests[2];
    HalfInts turns[2];
    __builtin_memcpy(angles, &angle, sizeof angle);
    for (int half = 0; half < 2; ++half) {
        const Doubles a = __builtin_convertvector(angles[half], Doubles);
        // Adding 1.5 * 2^52 rounds to a whole number and leaves it in the low bits.
        const double magic = 6755399441055744.0;
        const Doubles shifted = a * 0.63661977236758134308 + magic;
        const Doubles whole = shifted - magic;
        // pi/2 in two parts.
        Doubles r = a - whole * 1.57079632679489655800;
        r = r - whole * 6.12323399573676603587e-17;
        // Beyond 2^52 turns a float does not determine the angle any more: the rest is taken as 0.
        const Longs inside = (r >= -0.8) & (r <= 0.8);
        r = (Doubles)((Longs)r & inside);
        rests[half] = __builtin_convertvector(r, HalfFloats);
        turns[half] = __builtin_convertvector((Longs)shifted, HalfInts);
    }
    __builtin_memcpy(&rest, rests, sizeof rest);
    __builtin_memcpy(&quarters, turns, sizeof quarters);
}

// For angles in [-pi/4, pi/4].
RGLD_INLINE CosSin small_cos_sin(Floats x) {
    const Floats x2 = x * x;
    Floats s = fused(x2, splat(-1.9515295891e-4f), splat(8.3321608736e-3f));
    s = fused(s, x2, splat(-1.6666654611e-1f));
    s = fused(s * x2, x, x);
    Floats c = fused(x2, splat(2.443315711809948e-5f), splat(-1.388731625493765e-3f));
    c = fused(c, x2, splat(4.166664568298827e-2f));
    c = fused(c * x2, x2, fused(x2, splat(-0.5f), splat(1.0f)));
    return {c, s};
}

RGLD_INLINE CosSin twice(CosSin a) {
    const Floats s2 = a.sin + a.sin;
    return {fused(-s2, a.sin, splat(1.0f)), s2 * a.cos};
}

// What a quarter turn makes of a cosine and a sine: the one that takes the place of the first, with its sign.
RGLD_INLINE Ints turned(Ints own, Ints other, Ints odd, Ints quarters) {
    return ((odd & other) | (~odd & own)) ^ ((quarters << 30) & splat(INT32_MIN));
}

// Replaces the cosine and sine of the far lanes by those of the reduced angle; the other lanes stay as they are.
__attribute__((noinline)) void replace_far(const Floats* angle, const Ints* far, CosSin* wave) {
    Floats x;
    Ints quarters;
    reduce(*angle, x, quarters);
    const CosSin near = small_cos_sin(x);
    const Ints odd = (quarters << 31) >> 31;
    wave->cos = chosen(*far, (Floats)turned((Ints)near.cos, (Ints)near.sin, odd, quarters + 1), wave->cos);
    wave->sin = chosen(*far, (Floats)turned((Ints)near.sin, (Ints)near.cos, odd, quarters), wave->sin);
}

// Angles up to pi, nearly all at the widest bandwidth, are quartered and doubled twice: cheaper than reducing them.
RGLD_INLINE CosSin cos_sin(Floats angle) {
    const Floats quarter = angle * 0.25f;
    CosSin wave = twice(twice(small_cos_sin(quarter)));
    const Ints far = ((Ints)quarter & INT32_MAX) > 0x3f490fdb;  // the bits of pi/4
    if (__builtin_expect(any(far), 0)) replace_far(&angle, &far, &wave);
    return wave;
}

// The cosine alone, to the same bits, where most angles are far.
RGLD_INLINE Floats cosine(Floats angle) {
    const Floats quarter = angle * 0.25f;
    const Floats near = twice(twice(small_cos_sin(quarter))).cos;
    const Ints far = ((Ints)quarter & INT32_MAX) > 0x3f490fdb;  // the bits of pi/4
    Floats x;
    Ints quarters;
    reduce(angle, x, quarters);
    const CosSin reduced = small_cos_sin(x);
    const Ints odd = (quarters << 31) >> 31;
    return chosen(far, (Floats)turned((Ints)reduced.cos, (Ints)reduced.sin, odd, quarters + 1), near);
}

// ---- global branch

// A pack of rows is computed at a time. That is several vectors side by side, because each step of one vector has to
// wait for the step before.
constexpr int kParts = int(kPack) / kLanes;

struct Waves {
    CosSin part[kParts];
};

// The wave of bandwidth m of a pack of angles, given that of the bandwidth before it.
RGLD_INLINE void next_waves(const GlobalView& view, size_t m, const float* angles, Waves& waves) {
    if (view.doubled[m]) {
        for (int p = 0; p < kParts; ++p) waves.part[p] = twice(waves.part[p]);
    } else {
        for (int p = 0; p < kParts; ++p) waves.part[p] = cos_sin(load<Floats>(angles + p * kLanes) * view.factor[m]);
    }
}

void global_scores(const GlobalView& view, const float* angles, size_t stride, size_t n_rows, float* scores) {
    const size_t D = view.n_features;
    for (size_t i = 0; i < n_rows; i += kPack) {
        Floats cos_sum[kParts] = {}, sin_sum[kParts] = {};
        for (size_t j = 0; j < D; ++j) {
            Waves waves = {};
            for (size_t m = 0; m < view.n_bandwidths; ++m) {
                next_waves(view, m, angles + j * stride + i, waves);
                const Floats cos_weight = splat(view.cos_weight[m * D + j]),
                             sin_weight = splat(view.sin_weight[m * D + j]);
                for (int p = 0; p < kParts; ++p) {
                    cos_sum[p] = fused(waves.part[p].cos, cos_weight, cos_sum[p]);
                    sin_sum[p] = fused(waves.part[p].sin, sin_weight, sin_sum[p]);
                }
            }
        }
        for (int p = 0; p < kParts; ++p) store(scores + i + p * kLanes, view.constant - (cos_sum[p] + sin_sum[p]));
    }
}

// Sums over rows: row i is added in lane i modulo kPack, whatever the width of a vector. Then the lanes are added, the
// upper half to the lower half until one is left.
RGLD_INLINE double total(const float* lanes) {
    const Eight e = load<Eight>(lanes) + load<Eight>(lanes + 8);
    const Four f = {e[0] + e[4], e[1] + e[5], e[2] + e[6], e[3] + e[7]};
    return double((f[0] + f[2]) + (f[1] + f[3]));
}

// Three sums side by side, because each addition has to wait for the one before. They have names instead of indices, so
// that the compiler keeps them in registers.
struct Three {
    Floats a, b, c;
};
RGLD_INLINE Three load_three(const float* features) {
    return {in_register(load<Floats>(features)), in_register(load<Floats>(features + kSumRows)),
            in_register(load<Floats>(features + 2 * kSumRows))};
}
RGLD_INLINE void store_three(float* to, size_t stride, const Three& three) {
    store(to, three.a), store(to + stride, three.b), store(to + 2 * stride, three.c);
}
RGLD_INLINE void add_products(const Three& x, const float* from, Three& sum) {
    const Floats y = in_register(load<Floats>(from));
    sum.a = fused(x.a, y, sum.a), sum.b = fused(x.b, y, sum.b), sum.c = fused(x.c, y, sum.c);
}

// sums[i * stride + j] = sum over rows of a_i * b_j, for three features from a on and `Columns`, 3 or 1, from b on.
template <int Columns>
RGLD_INLINE void sum_products(const float* a, const float* b, size_t n_rows, double* sums, size_t stride) {
    float lanes[Columns][3][kPack];
    for (int p = 0; p < kParts; ++p) {
        Three first = {}, second = {}, third = {};
        for (size_t row = size_t(p * kLanes); row < n_rows; row += kPack) {
            const Three x = load_three(a + row);
            add_products(x, b + row, first);
            if (Columns == 1) continue;
            add_products(x, b + row + kSumRows, second);
            add_products(x, b + row + 2 * kSumRows, third);
        }
        store_three(lanes[0][0] + p * kLanes, kPack, first);
        if (Columns == 1) continue;
        store_three(lanes[1 % Columns][0] + p * kLanes, kPack, second);
        store_three(lanes[2 % Columns][0] + p * kLanes, kPack, third);
    }
    for (int j = 0; j < Columns; ++j)
        for (int i = 0; i < 3; ++i) sums[size_t(i) * stride + size_t(j)] = total(lanes[j][i]);
}

// The sum over rows of a * b.
RGLD_INLINE double sum_of_products(const float* a, const float* b, size_t n_rows) {
    float lanes[kPack];
    for (int p = 0; p < kParts; ++p) {
        Floats sum = {};
        for (size_t row = size_t(p * kLanes); row < n_rows; row += kPack)
            sum = fused(load<Floats>(a + row), load<Floats>(b + row), sum);
        store(lanes + p * kLanes, sum);
    }
    return total(lanes);
}

// Subtracts `origin` from a feature, and returns the sum of what is left.
RGLD_INLINE double take_deviations(float* feature, float origin, size_t n_rows) {
    float lanes[kPack];
    for (int p = 0; p < kParts; ++p) {
        Floats sum = {};
        for (size_t row = size_t(p * kLanes); row < n_rows; row += kPack) {
            const Floats x = load<Floats>(feature + row) - origin;
            store(feature + row, x);
            sum += x;
        }
        store(lanes + p * kLanes, sum);
    }
    return total(lanes);
}

// Adds the sums of D features of at most kSumRows rows to phi_sum (D), and those of their products to phi_phi_sum
// (D, D; upper triangle). Overwrites the features, which are at stride kSumRows; scratch has room for sum_scratch(D)
// floats.
//
// Rounding in float32 sums of squares could be larger than a small spread. Therefore the deviations from the first row
// are summed in float32, few in each lane, and the products with the first row are added in float64.
void add_sums(float* features, size_t D, size_t n_rows, float* scratch, double* phi_sum, double* phi_phi_sum) {
    const size_t whole = rgld::padded(n_rows, kPack);
    double* sum = reinterpret_cast<double*>(scratch);  // (D)
    double* first = sum + D;                           // (D)
    double* products = first + D;                      // (3, D)
    for (size_t j = 0; j < D; ++j) {
        float* phi = features + j * kSumRows;
        const float origin = phi[0];
        for (size_t i = n_rows; i < whole; ++i) phi[i] = origin;  // behind the last row: a deviation of 0
        first[j] = double(origin);
        sum[j] = take_deviations(phi, origin, whole);
        phi_sum[j] += sum[j] + double(n_rows) * first[j];
    }
    for (size_t start = 0; start < D; start += 3) {
        const size_t end = start + 3 <= D ? start + 3 : D;
        const float* own = features + start * kSumRows;
        size_t b = start;
        if (end == start + 3) {
            for (; b + 3 <= D; b += 3) sum_products<3>(own, features + b * kSumRows, whole, products + b, D);
            for (; b < D; ++b) sum_products<1>(own, features + b * kSumRows, whole, products + b, D);
        }
        for (size_t a = start; a < end; ++a) {
            double* product = products + (a - start) * D;
            for (size_t c = b > a ? b : a; c < D; ++c)
                product[c] = sum_of_products(features + a * kSumRows, features + c * kSumRows, whole);
            double* phi_phi = phi_phi_sum + a * D;
            for (size_t c = a; c < D; ++c)
                phi_phi[c] += product[c] + first[a] * sum[c] + first[c] * sum[a] + double(n_rows) * first[a] * first[c];
        }
    }
}

void embedding_sums(const GlobalView& view, const float* angles, size_t n_rows, float* scratch, double* phi_sum,
                    double* phi_phi_sum) {
    const size_t D = view.n_features, M = view.n_bandwidths;
    float* phi = scratch;  // (M, D, kSumRows)
    for (size_t j = 0; j < D; ++j) {
        for (size_t i = 0; i < n_rows; i += kPack) {
            Waves waves = {};
            for (size_t m = 0; m < M; ++m) {
                next_waves(view, m, angles + j * kSumRows + i, waves);
                const Floats cos_weight = splat(view.cos_weight[m * D + j]),
                             sin_weight = splat(view.sin_weight[m * D + j]);
                float* to = phi + (m * D + j) * kSumRows + i;
                for (int p = 0; p < kParts; ++p)
                    store(to + p * kLanes, fused(waves.part[p].sin, sin_weight, waves.part[p].cos * cos_weight));
            }
        }
    }
    for (size_t m = 0; m < M; ++m)
        add_sums(phi + m * D * kSumRows, D, n_rows, phi + M * D * kSumRows, phi_sum + m * D, phi_phi_sum + m * D * D);
}

// ---- leverage

// phi of a pack of rows, (P, phi_stride): the projected coordinates times `linear`, then cosines; minus `origin` (P).
RGLD_INLINE void leverage_features(const LeverageView& view, const float* z, size_t stride, const float* origin,
                                   float* phi, size_t phi_stride) {
    const size_t r = view.n_dims;
    for (size_t c = 0; c < r; ++c)
        for (int p = 0; p < kParts; ++p)
            store(phi + c * phi_stride + p * kLanes,
                  fused(load<Floats>(z + c * stride + p * kLanes), splat(view.linear), splat(-origin[c])));
    for (size_t f = 0; f < view.n_cosines; ++f) {
        Floats angle[kParts];
        for (int p = 0; p < kParts; ++p) angle[p] = splat(view.phases[f]);
        for (size_t c = 0; c < r; ++c) {
            const Floats frequency = splat(view.frequencies[f * r + c]);
            for (int p = 0; p < kParts; ++p)
                angle[p] = fused(load<Floats>(z + c * stride + p * kLanes), frequency, angle[p]);
        }
        for (int p = 0; p < kParts; ++p)
            store(phi + (r + f) * phi_stride + p * kLanes, cosine(angle[p]) - origin[r + f]);
    }
}

// The scores of some packs of rows side by side: each sum has to wait for its last addition.
template <int Packs>
RGLD_INLINE void leverage_packs(const LeverageView& view, const float* z, size_t stride, size_t whole, float* phi,
                                float* scores) {
    constexpr int kVectors = Packs * kParts;
    for (int pack = 0; pack < Packs; ++pack)
        leverage_features(view, z + size_t(pack) * kPack, stride, view.mean, phi + size_t(pack) * kPack, Packs * kPack);
    Floats form[kVectors] = {};
    const float* root = view.root;
    for (size_t first = 0; first < whole; first += kRootRows) {
        Floats y[kRootRows][kVectors] = {};
        for (size_t j = 0; j < first + kRootRows; ++j, root += kRootRows) {
            for (int p = 0; p < kVectors; ++p) {
                const Floats x = load<Floats>(phi + j * Packs * kPack + p * kLanes);
                for (size_t a = 0; a < kRootRows; ++a) y[a][p] = fused(x, splat(root[a]), y[a][p]);
            }
        }
        for (size_t a = 0; a < kRootRows; ++a)
            for (int p = 0; p < kVectors; ++p) form[p] = fused(y[a][p], y[a][p], form[p]);
    }
    for (int p = 0; p < kVectors; ++p) {
        const Ints below = (Ints)(form[p] < kLargestForm);
        store(scores + p * kLanes, chosen(below, form[p], splat(kLargestForm)));
    }
}

void leverage_scores(const LeverageView& view, const float* z, size_t stride, size_t n_rows, float* scratch,
                     float* scores) {
    constexpr int kPacks = kParts == 1 ? int(kLeveragePacks) : 1;  // as many vectors as registers hold
    const size_t n_features = view.n_dims + view.n_cosines, whole = rgld::padded(n_features, kRootRows);
    float* phi = scratch;  // (whole, packs * kPack)
    size_t i = 0;
    for (size_t j = n_features * kPacks * kPack; j < whole * kPacks * kPack; ++j) phi[j] = 0.0f;
    for (; i + (kPacks - 1) * kPack < n_rows; i += kPacks * kPack)
        leverage_packs<kPacks>(view, z + i, stride, whole, phi, scores + i);
    if (i >= n_rows) return;
    for (size_t j = n_features * kPack; j < whole * kPack; ++j) phi[j] = 0.0f;
    for (; i < n_rows; i += kPack) leverage_packs<1>(view, z + i, stride, whole, phi, scores + i);
}

void leverage_sums(const LeverageView& view, const float* z, size_t n_rows, float* scratch, double* phi_sum,
                   double* phi_phi_sum) {
    const size_t n_features = view.n_dims + view.n_cosines;
    float* zeros = scratch + n_features * kSumRows;
    for (size_t j = 0; j < n_features; ++j) zeros[j] = 0.0f;
    for (size_t i = 0; i < n_rows; i += kPack) leverage_features(view, z + i, kSumRows, zeros, scratch + i, kSumRows);
    add_sums(scratch, n_features, n_rows, zeros, phi_sum, phi_phi_sum);
}

// ---- covariance

// Sums over rows in float64 have eight lanes, whatever the width of a vector, and add these in the same order.
constexpr int kSumLanes = 8, kSumParts = kSumLanes / (kLanes / 2);

RGLD_INLINE double total(const Doubles* parts) {
    double lanes[kSumLanes];
    for (int p = 0; p < kSumParts; ++p) store(lanes + p * kLanes / 2, parts[p]);
    return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

// Adds the products of some deviations from `a` and from `b` on, (Rows, length) and (Columns, length), to sums at
// stride n_dims.
template <size_t Rows, size_t Columns>
RGLD_INLINE void add_products(const double* a, const double* b, size_t length, double* sums, size_t n_dims) {
    Doubles sum[Rows][Columns][kSumParts] = {};
    for (size_t i = 0; i < length; i += kSumLanes)
        for (int p = 0; p < kSumParts; ++p)
            for (size_t j = 0; j < Rows; ++j)
                for (size_t k = 0; k < Columns; ++k)
                    sum[j][k][p] += load<Doubles>(a + j * length + i + size_t(p * kLanes / 2)) *
                                    load<Doubles>(b + k * length + i + size_t(p * kLanes / 2));
    for (size_t j = 0; j < Rows; ++j)
        for (size_t k = 0; k < Columns; ++k) sums[j * n_dims + k] += total(sum[j][k]);
}

void covariance(const float* z, size_t stride, size_t n_dims, size_t n_rows, double* scratch, double* covariance) {
    constexpr size_t kLength = rgld::kCovarianceRows;
    constexpr size_t kTile = kSumParts == 1 ? 4 : 2;  // as many sums as registers hold
    double *mean = scratch, *deviations = scratch + n_dims;
    for (size_t c = 0; c < n_dims; ++c) {
        double sums[kSumLanes] = {};
        for (size_t i = 0; i < n_rows; ++i) sums[i % kSumLanes] += double(z[c * stride + i]);
        mean[c] = 0.0;
        for (int lane = 0; lane < kSumLanes; ++lane) mean[c] += sums[lane] / double(n_rows);
    }
    for (size_t i = 0; i < n_dims * n_dims; ++i) covariance[i] = 0.0;
    for (size_t start = 0; start < n_rows; start += kLength) {
        const size_t count = n_rows - start < kLength ? n_rows - start : kLength;
        for (size_t c = 0; c < n_dims; ++c)
            for (size_t i = 0; i < kLength; ++i)
                deviations[c * kLength + i] = i < count ? double(z[c * stride + start + i]) - mean[c] : 0.0;
        for (size_t a = 0; a < n_dims; a += kTile) {
            for (size_t b = a; b < n_dims; b += kTile) {
                const double *from = deviations + a * kLength, *with = deviations + b * kLength;
                double* sums = covariance + a * n_dims + b;
                if (b + kTile <= n_dims) {
                    add_products<kTile, kTile>(from, with, kLength, sums, n_dims);
                    continue;
                }
                for (size_t j = a; j < n_dims && j < a + kTile; ++j)
                    for (size_t k = b; k < n_dims; ++k)
                        add_products<1, 1>(deviations + j * kLength, deviations + k * kLength, kLength,
                                           covariance + j * n_dims + k, n_dims);
            }
        }
    }
    for (size_t a = 0; a < n_dims; ++a)
        for (size_t b = a; b < n_dims; ++b) {
            covariance[a * n_dims + b] /= double(n_rows);
            covariance[b * n_dims + a] = covariance[a * n_dims + b];
        }
}

// ---- logarithm

// The logarithm of positive numbers that are not denormal. The exponent is added to the logarithm of the mantissa,
// which is the series of log((1 + s) / (1 - s)) with |s| <= 0.172.
RGLD_INLINE Floats logarithm(Floats x) {
    const Ints bits = (Ints)x;
    Ints exponent = (bits >> 23) - 127;
    Floats mantissa = (Floats)((bits & 0x7fffff) | 0x3f800000);
    const Ints upper = (Ints)(mantissa > 1.41421356f);
    exponent -= upper;  // true is -1
    mantissa = chosen(upper, mantissa * 0.5f, mantissa);
    const Floats s = (mantissa - 1.0f) / (mantissa + 1.0f);
    const Floats s2 = s * s;
    Floats series = fused(s2, splat(2.0f / 9.0f), splat(2.0f / 7.0f));
    series = fused(series, s2, splat(2.0f / 5.0f));
    series = fused(series, s2, splat(2.0f / 3.0f));
    series = fused(series, s2, splat(2.0f));
    return fused(__builtin_convertvector(exponent, Floats), splat(0.693147181f), series * s);
}

void logarithms(float* values, size_t n, float smallest) {
    const auto log = [smallest](Floats x) { return logarithm(chosen((Ints)(x > smallest), x, splat(smallest))); };
    size_t i = 0;
    for (; i + kLanes <= n; i += kLanes) store(values + i, log(load<Floats>(values + i)));
    float last[kLanes] = {};
    for (size_t j = i; j < n; ++j) last[j - i] = values[j];
    if (i < n) store(last, log(load<Floats>(last)));
    for (size_t j = i; j < n; ++j) values[j] = last[j - i];
}

// asinh(x) = log(1 + y) with y = x + x^2 / (1 + sqrt(1 + x^2)), which loses no digits where x is small.
RGLD_INLINE Doubles arcsinh(Doubles x) {
    const Longs sign = (Longs)x & (Longs{} + INT64_MIN);
    const Doubles size = (Doubles)((Longs)x ^ sign), square = size * size;
    const Doubles y = size + square / (1.0 + square_root(1.0 + square));
    // 1 + y = mantissa * 2^exponent. Where 1 + y is near 1, y itself has more digits.
    const Doubles whole = 1.0 + y;
    const Longs bits = (Longs)whole;
    Longs exponent = ((bits >> 52) & 0x7ff) - 1023;
    Doubles mantissa = (Doubles)((bits & 0xfffffffffffff) | 0x3ff0000000000000);
    const Longs upper = (Longs)(mantissa > 1.4142135623730951);
    exponent -= upper;  // true is -1
    mantissa = chosen(upper, mantissa * 0.5, mantissa);
    const Doubles rest = chosen((Longs)(whole < 1.4142135623730951), y, mantissa - 1.0);
    const Doubles s = rest / (rest + 2.0), s2 = s * s;
    Doubles series = Doubles{} + 2.0 / 23.0;
#pragma GCC unroll 16
    for (int k = 21; k >= 1; k -= 2) series = series * s2 + 2.0 / double(k);
    // Adding 1.5 * 2^52 and subtracting it again converts an integer in the low bits to a double.
    const double magic = 6755399441055744.0;
    const Doubles shifted = (Doubles)(exponent + (Longs)(Doubles{} + magic));
    const Doubles result = (shifted - magic) * 0.69314718055994530942 + series * s;
    return (Doubles)((Longs)result | sign);
}

void arcsinh_values(double* values, size_t n) {
    constexpr size_t kDoubles = kLanes / 2;
    size_t i = 0;
    for (; i + kDoubles <= n; i += kDoubles) store(values + i, arcsinh(load<Doubles>(values + i)));
    double last[kDoubles] = {};
    for (size_t j = i; j < n; ++j) last[j - i] = values[j];
    if (i < n) store(last, arcsinh(load<Doubles>(last)));
    for (size_t j = i; j < n; ++j) values[j] = last[j - i];
}

// ---- lists of values

void scale_values(const double* values, size_t n, double center, double scale, double largest, float* scaled) {
    constexpr size_t kDoubles = kLanes / 2;
    const Doubles high = Doubles{} + largest, low = -high;
    const auto scale_some = [&](Doubles x) {
        const Doubles y = (x - center) / scale, above = chosen((Longs)(low < y), y, low);  // low for a NaN
        return __builtin_convertvector(chosen((Longs)(above < high), above, high), HalfFloats);
    };
    size_t i = 0;
    for (; i + kDoubles <= n; i += kDoubles) store(scaled + i, scale_some(load<Doubles>(values + i)));
    if (i == n) return;
    double last[kDoubles] = {};
    for (size_t j = i; j < n; ++j) last[j - i] = values[j];
    const HalfFloats rest = scale_some(load<Doubles>(last));
    for (size_t j = i; j < n; ++j) scaled[j] = rest[j - i];
}

bool two_values(const double* values, size_t n, double* two) {
    constexpr size_t kDoubles = kLanes / 2;
    const double first = values[0];
    double second = first;
    for (size_t i = 1; i < n && second == first; ++i) second = values[i];
    two[0] = first, two[1] = second;
    size_t i = 0;
    for (; i + kDoubles <= n; i += kDoubles) {
        const Doubles x = load<Doubles>(values + i);
        if (any((Ints)(~((x == first) | (x == second))))) return false;
    }
    for (; i < n; ++i)
        if (values[i] != first && values[i] != second) return false;
    return true;
}

void choose(const double* values, size_t n, double second, const float* two, float* chosen_values) {
    constexpr size_t kDoubles = kLanes / 2;
    const HalfFloats one = two[0] - HalfFloats{}, other = two[1] - HalfFloats{};
    size_t i = 0;
    for (; i + kDoubles <= n; i += kDoubles) {
        const HalfInts is_second = __builtin_convertvector((Longs)(load<Doubles>(values + i) == second), HalfInts);
        store(chosen_values + i, (HalfFloats)((is_second & (HalfInts)other) | (~is_second & (HalfInts)one)));
    }
    for (; i < n; ++i) chosen_values[i] = values[i] == second ? two[1] : two[0];
}

bool finite_range(const float* values, size_t n, float* low, float* high) {
    constexpr int32_t kInfinity = 0x7f800000;
    Floats lowest = splat(values[0]), highest = lowest;
    Ints largest = {};  // the bits of the largest exponent
    const auto look_at = [&](Floats x) {
        lowest = chosen((Ints)(x < lowest), x, lowest);
        highest = chosen((Ints)(x > highest), x, highest);
        largest = larger(largest, (Ints)x & kInfinity);
    };
    size_t i = 0;
    for (; i + kLanes <= n; i += kLanes) look_at(load<Floats>(values + i));
    for (; i < n; ++i) look_at(splat(values[i]));
    *low = lowest[0], *high = highest[0];
    for (int lane = 1; lane < kLanes; ++lane) {
        if (lowest[lane] < *low) *low = lowest[lane];
        if (highest[lane] > *high) *high = highest[lane];
    }
    return !any((Ints)(largest == kInfinity));
}

void even_steps(const float* values, size_t n, float low, float per_unit, uint32_t last, int bits, uint32_t* steps) {
    const Ints most = splat(int32_t(last));
    Ints place;
    for (int lane = 0; lane < kLanes; ++lane) place[lane] = lane;
    const auto step_of = [&](Floats x) { return __builtin_convertvector((x - low) * per_unit, Ints); };
    size_t i = 0;
    for (; i + kLanes <= n; i += kLanes, place += kLanes)
        store(steps + i, smaller(step_of(load<Floats>(values + i)), most) << bits | place);
    for (; i < n; ++i) steps[i] = uint32_t(smaller(step_of(splat(values[i])), most)[0]) << bits | uint32_t(i);
}

// ---- local branch

// Distances are not negative, so their bits order as they do, and minima and maxima of integers sort them.
RGLD_INLINE void order(Floats& low, Floats& high) {
    const Floats a = low;
    low = smaller(a, high);
    high = larger(a, high);
}

// Sorts 8 vectors, lane by lane: an optimal sorting network of 19 comparators.
RGLD_INLINE void sort_batch(Floats* d) {
    order(d[0], d[2]), order(d[1], d[3]), order(d[4], d[6]), order(d[5], d[7]);
    order(d[0], d[4]), order(d[1], d[5]), order(d[2], d[6]), order(d[3], d[7]);
    order(d[0], d[1]), order(d[2], d[3]), order(d[4], d[5]), order(d[6], d[7]);
    order(d[2], d[4]), order(d[3], d[5]);
    order(d[1], d[4]), order(d[3], d[6]);
    order(d[1], d[2]), order(d[3], d[4]), order(d[5], d[6]);
}

RGLD_INLINE void batch_distances(const float* z, size_t stride, size_t n_dims, const float* references,
                                 size_t n_references, Floats* squared) {
    for (size_t b = 0; b < kBatch; ++b) squared[b] = Floats{};
    for (size_t c = 0; c < n_dims; ++c) {
        const Floats x = load<Floats>(z + c * stride);
        const float* reference = references + c * n_references;
#pragma GCC unroll 8
        for (size_t b = 0; b < kBatch; ++b) {
            const Floats difference = x - reference[b];
            squared[b] = fused(difference, difference, squared[b]);
        }
    }
}

// Merges a sorted batch into the sorted list of the `Kept` smallest: the lower half of a bitonic merge. The list stands
// at the end of a network of 16; the places before it count as minus infinity, and their comparators are left out.
template <int Kept>
RGLD_INLINE void merge_batch(Floats* kept, const Floats* batch) {
    constexpr int kNetwork = 16, kFirst = kNetwork - Kept;
    constexpr int taken = Kept < int(kBatch) ? Kept : int(kBatch);
#pragma GCC unroll 16
    for (int b = 0; b < taken; ++b) kept[Kept - 1 - b] = smaller(kept[Kept - 1 - b], batch[b]);
#pragma GCC unroll 4
    for (int step = kNetwork / 2; step > 0; step /= 2) {
#pragma GCC unroll 16
        for (int place = 0; place < kNetwork; ++place) {
            if ((place & step) == 0 && place >= kFirst) order(kept[place - kFirst], kept[place + step - kFirst]);
        }
    }
}

RGLD_INLINE Floats root_mean_square(const Ints* nearest, size_t n_neighbors) {
    const Ints match = nearest[0] == 0;
    Floats sum = (Floats)((match & nearest[n_neighbors]) | (~match & nearest[0]));
    for (size_t b = 1; b < n_neighbors; ++b) sum += (Floats)nearest[b];
    return square_root(sum / float(n_neighbors));
}

// Up to 15 neighbours, by networks: 1.9 times as fast as local_many, for 7,000 and for 1,000,000 rows (`make
// time-sorts`).
template <int Kept>
void local_few(const float* z, size_t stride, size_t n_rows, size_t n_dims, const float* references,
               size_t n_references, float* distance) {
    for (size_t i = 0; i < n_rows; i += kLanes) {
        Floats kept[Kept];
        for (int b = 0; b < Kept; ++b) kept[b] = splat(__builtin_inff());
        for (size_t first = 0; first < n_references; first += kBatch) {
            Floats squared[kBatch];
            batch_distances(z + i, stride, n_dims, references + first, n_references, squared);
            sort_batch(squared);
            merge_batch<Kept>(kept, squared);
        }
        store(distance + i, root_mean_square(reinterpret_cast<const Ints*>(kept), size_t(Kept - 1)));
    }
}

// Any number of neighbours, by insertion into a sorted list. A reference that is near to no row of the vector is
// skipped.
void local_many(const float* z, size_t stride, size_t n_rows, size_t n_dims, const float* references,
                size_t n_references, size_t n_neighbors, float* scratch, float* distance) {
    Ints* kept = reinterpret_cast<Ints*>(scratch);
    for (size_t i = 0; i < n_rows; i += kLanes) {
        for (size_t b = 0; b <= n_neighbors; ++b) kept[b] = splat(INT32_MAX);
        for (size_t first = 0; first < n_references; first += kBatch) {
            Floats squared[kBatch];
            batch_distances(z + i, stride, n_dims, references + first, n_references, squared);
            for (size_t b = 0; b < kBatch; ++b) {
                const Ints d = (Ints)squared[b];
                if (!any(d < kept[n_neighbors])) continue;
                for (size_t place = n_neighbors; place > 0; --place)
                    kept[place] = smaller(larger(d, kept[place - 1]), kept[place]);
                kept[0] = smaller(d, kept[0]);
            }
        }
        store(distance + i, root_mean_square(kept, n_neighbors));
    }
}

void local_scores(const float* z, size_t stride, size_t n_rows, size_t n_dims, const float* references,
                  size_t n_references, size_t n_neighbors, float* scratch, float* distance) {
    switch (n_neighbors) {
#define RGLD_FEW(k) \
    case k: return local_few<k + 1>(z, stride, n_rows, n_dims, references, n_references, distance);
        RGLD_FEW(1)
        RGLD_FEW(2)
        RGLD_FEW(3)
        RGLD_FEW(4)
        RGLD_FEW(5)
        RGLD_FEW(6)
        RGLD_FEW(7)
        RGLD_FEW(8)
        RGLD_FEW(9)
        RGLD_FEW(10)
        RGLD_FEW(11)
        RGLD_FEW(12)
        RGLD_FEW(13)
        RGLD_FEW(14)
        RGLD_FEW(15)
#undef RGLD_FEW
        default: return local_many(z, stride, n_rows, n_dims, references, n_references, n_neighbors, scratch, distance);
    }
}

// ---- the processor's limit

float busy(size_t n_rounds) {
    constexpr int kChains = 10;  // enough to keep the processor busy while each waits for its last step
    Floats chain[kChains];
    for (int c = 0; c < kChains; ++c) chain[c] = splat(1.0f + float(c));
    for (size_t round = 0; round < n_rounds; ++round)
        for (int p = 0; p < kParts; ++p)
            for (int c = 0; c < kChains; ++c) chain[c] = fused(chain[c], splat(0.999f), splat(0.001f));
    for (int c = 1; c < kChains; ++c) chain[0] += chain[c];
    return chain[0][0];
}

}  // namespace

extern const rgld::Kernels kKernels;
const rgld::Kernels kKernels = {RGLD_NAME,      project<false>,  project<true>, squared_distances, global_scores,
                                embedding_sums, leverage_scores, leverage_sums, local_scores,      covariance,
                                logarithms,     arcsinh_values,  scale_values,  two_values,        choose,
                                finite_range,   even_steps,      busy};

}  // namespace RGLD_NAMESPACE
