// The kernels: what is computed for a block of rows, once per instruction set.
//
// A block holds its rows along the last axis: value (c, i) of row i is at [c * stride + i]. The stride is a multiple of
// kPack and rows are computed in whole vectors or packs: what stands behind the last row is read and computed on, never
// used. What a row gets is made of
// the same operations in the same order in every instruction set: the same bits on all processors with fused
// multiply-add. The projection does without, so that it equals the NumPy twin's to the bit.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rgld {

constexpr size_t kPack = 16;  // rows; the lanes of the widest vector
constexpr size_t kBatch = 8;  // references; the local kernel takes so many at a time
constexpr size_t kSumRows = 512;  // rows whose random features are held at a time, to be summed

constexpr size_t padded(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

// One view of the global branch, prepared for the kernels. Bandwidths stand from the widest to the narrowest.
struct GlobalView {
    size_t n_features;       // D
    size_t n_bandwidths;     // M
    const float* factor;     // (M): 1 / multiplier
    const uint8_t* doubled;  // (M): 1 where the factor is twice the one before it
    const float* cos_weight;  // (M, D)
    const float* sin_weight;  // (M, D)
    float constant;
};

struct Kernels {
    const char* name;

    // out(c, i) = sum over j of columns(features[j], i) * projection[j, c]; rounded after every product and sum, to equal
    // the NumPy twin's to the bit, or fused.
    void (*project)(const float* columns, size_t stride, size_t n_rows, const int32_t* features, size_t n_features,
                    const float* projection, size_t n_out, float* out, size_t out_stride);
    void (*project_fused)(const float* columns, size_t stride, size_t n_rows, const int32_t* features, size_t n_features,
                    const float* projection, size_t n_out, float* out, size_t out_stride);

    // scores[i] = constant - sum over m, j of cos_weight[m, j] cos(angles(j, i) factor[m]) + sin_weight[m, j] sin(...)
    void (*global_scores)(const GlobalView& view, const float* angles, size_t stride, size_t n_rows, float* scores);

    // Adds to phi_sum (M, D) and phi_phi_sum (M, D, D; upper triangle) the sums over at most kSumRows rows of
    // phi = cos_weight cos(...) + sin_weight sin(...); angles are at stride kSumRows.
    void (*embedding_sums)(const GlobalView& view, const float* angles, size_t n_rows, float* scratch, double* phi_sum,
                           double* phi_phi_sum);

    // distance[i] = root mean square of the k smallest distances of row i to the references (r, n_references), leaving
    // out one exact match. n_references is a multiple of kBatch; infinite references are padding.
    void (*local_scores)(const float* z, size_t stride, size_t n_rows, size_t n_dims, const float* references,
                         size_t n_references, size_t n_neighbors, float* scratch, float* distance);

    // Replaces each value by the logarithm of the greater of it and `smallest`, a positive number.
    void (*logarithms)(float* values, size_t n, float smallest);

    // Replaces each value, at most 1e18 in size, by its area hyperbolic sine. In float64, for the result to round to the
    // same float32 as the NumPy twin's.
    void (*arcsinh)(double* values, size_t n);

    // Does n_rounds * kBusyRound fused multiply-adds that depend on nothing but themselves: the processor's limit.
    float (*busy)(size_t n_rounds);
};

constexpr size_t kBusyRound = 10 * kPack;

constexpr size_t embedding_scratch(size_t n_features, size_t n_bandwidths) {
    return kSumRows * n_features * n_bandwidths + 6 * n_features;
}
constexpr size_t local_scratch(size_t n_neighbors) { return kPack * (n_neighbors + 1); }

// The fastest kernels this processor runs, or those RGLD_CPU names (baseline, avx2, avx512).
const Kernels& kernels();

}  // namespace rgld
