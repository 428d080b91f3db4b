// The kernels: what is computed for a block of rows. They are compiled once for each instruction set.
//
// A block holds its rows along the last axis: value (c, i) of row i is at [c * stride + i]. The stride is a multiple of
// kPack, and rows are computed in whole vectors or packs: the memory behind the last row is read and computed with, but
// the results are not used.
//
// The result of a row comes from the same operations in the same order in every instruction set. It is therefore the
// same to the bit on all processors with fused multiply-add. `project` does not fuse, so that it equals the NumPy twin
// to the bit on every processor.
//
// No index depends on a value: the kernels stay within their arrays for any bits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rgld {

constexpr size_t kPack = 16;      // rows: as many as the widest vector has lanes
constexpr size_t kBatch = 8;      // references that the local kernel takes at a time
constexpr size_t kSumRows = 512;  // rows whose random features are computed and summed at a time

constexpr size_t padded(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

// One view of the global branch, prepared for the kernels. Bandwidths stand from the widest to the narrowest.
struct GlobalView {
    size_t n_features;        // D
    size_t n_bandwidths;      // M
    const float* factor;      // (M): 1 / multiplier
    const uint8_t* doubled;   // (M): 1 where the factor is twice the one before it
    const float* cos_weight;  // (M, D)
    const float* sin_weight;  // (M, D)
    float constant;
};

// One leverage view, prepared for the kernels. Its P = r + F features phi are the projected coordinates times `linear`,
// then F cosines.
struct LeverageView {
    size_t n_dims;     // r
    size_t n_cosines;  // F
    float linear;
    const float* frequencies;  // (F, r)
    const float* phases;       // (F)
    const float* mean;         // (P)
    const float* root;         // A, see pack_root
};

constexpr size_t kRootRows = 4;        // rows of A that are multiplied at a time
constexpr float kLargestForm = 1e37f;  // a larger leverage counts as this

struct Kernels {
    const char* name;

    // out(c, i) = sum over j of columns(features[j], i) * projection[j, c]. `project` rounds after every product and
    // every sum, as the NumPy twin does; `project_fused` rounds once.
    void (*project)(const float* columns, size_t stride, size_t n_rows, const int32_t* features, size_t n_features,
                    const float* projection, size_t n_out, float* out, size_t out_stride);
    void (*project_fused)(const float* columns, size_t stride, size_t n_rows, const int32_t* features,
                          size_t n_features, const float* projection, size_t n_out, float* out, size_t out_stride);

    // squared[i] = squared distance of z(., i) and z(., i + step), rounded after every product and every sum. z has
    // n_dims rows of `stride`, and `squared` has room for whole packs.
    void (*squared_distances)(const float* z, size_t stride, size_t n_dims, size_t step, size_t n_rows, float* squared);

    // scores[i] = constant - sum over m, j of cos_weight[m, j] cos(angles(j, i) factor[m]) + sin_weight[m, j] sin(...)
    void (*global_scores)(const GlobalView& view, const float* angles, size_t stride, size_t n_rows, float* scores);

    // Adds to phi_sum (M, D) and phi_phi_sum (M, D, D; upper triangle) the sums over at most kSumRows rows of
    // phi = cos_weight cos(...) + sin_weight sin(...); angles are at stride kSumRows.
    void (*embedding_sums)(const GlobalView& view, const float* angles, size_t n_rows, float* scratch, double* phi_sum,
                           double* phi_phi_sum);

    // scores[i] = |A (phi - mean)|^2 of row i, given its projected coordinates z.
    void (*leverage_scores)(const LeverageView& view, const float* z, size_t stride, size_t n_rows, float* scratch,
                            float* scores);

    // Adds to phi_sum (P) and phi_phi_sum (P, P; upper triangle) the sums of phi over at most kSumRows rows; z is at
    // stride kSumRows.
    void (*leverage_sums)(const LeverageView& view, const float* z, size_t n_rows, float* scratch, double* phi_sum,
                          double* phi_phi_sum);

    // distance[i] = root mean square of the n_neighbors smallest distances of row i to the references
    // (r, n_references), leaving out one exact match. n_references is a multiple of kBatch; infinite references fill it
    // up.
    void (*local_scores)(const float* z, size_t stride, size_t n_rows, size_t n_dims, const float* references,
                         size_t n_references, size_t n_neighbors, float* scratch, float* distance);

    // covariance[a * n_dims + b] of the coordinates z (n_dims, stride) of n_rows rows, by deviations from the mean in
    // float64; `scratch` has room for n_dims * (kCovarianceRows + 1) doubles.
    void (*covariance)(const float* z, size_t stride, size_t n_dims, size_t n_rows, double* scratch,
                       double* covariance);

    // Replaces each value by its logarithm; a value below `smallest`, a positive number, counts as `smallest`.
    void (*logarithms)(float* values, size_t n, float smallest);

    // Replaces each value, at most 1e18 in size, by its inverse hyperbolic sine. In float64, so that the result rounds
    // to the same float32 as the NumPy twin's.
    void (*arcsinh)(double* values, size_t n);

    // scaled[i] = (values[i] - center) / scale in float64, within +- largest; -largest for a NaN.
    void (*scale)(const double* values, size_t n, double center, double scale, double largest, float* scaled);

    // Whether there are at most two different values and no NaN. Then `two` receives them: the first value, and another
    // (or again the first).
    bool (*two_values)(const double* values, size_t n, double* two);

    // chosen[i] = two[1] where the value is `second`, else two[0].
    void (*choose)(const double* values, size_t n, double second, const float* two, float* chosen);

    // The lowest and the highest of at least one value; false if one of them is not finite.
    bool (*finite_range)(const float* values, size_t n, float* low, float* high);

    // steps[i] = min(whole part of (values[i] - low) * per_unit, last) << bits | i. No value is below `low`, and `last`
    // is at most 2^24.
    void (*steps)(const float* values, size_t n, float low, float per_unit, uint32_t last, int bits, uint32_t* steps);

    // Does n_rounds * kBusyRound fused multiply-adds without reading memory: as fast as the processor can.
    float (*busy)(size_t n_rounds);
};

constexpr size_t kBusyRound = 10 * kPack;

constexpr size_t sum_scratch(size_t n_features) { return 5 * sizeof(double) / sizeof(float) * n_features; }
constexpr size_t embedding_scratch(size_t n_features, size_t n_bandwidths) {
    return kSumRows * n_features * n_bandwidths + sum_scratch(n_features);
}
constexpr size_t kCovarianceRows = 128;  // rows whose deviations are multiplied at a time
constexpr size_t kLeveragePacks = 2;     // at most so many packs of rows are scored side by side
constexpr size_t leverage_scratch(size_t n_dims, size_t n_cosines) {
    return kLeveragePacks * kPack * padded(n_dims + n_cosines, kRootRows);
}
constexpr size_t local_scratch(size_t n_neighbors) { return kPack * (n_neighbors + 1); }

// The fastest kernels this processor runs, or those RGLD_CPU names (baseline, avx2, avx512).
const Kernels& kernels();

}  // namespace rgld
