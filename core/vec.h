// Vectors of RGLD_LANES floats for one instruction set, by the vector extensions of GCC and Clang.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

namespace RGLD_NAMESPACE {

constexpr int kLanes = RGLD_LANES;

typedef float Floats __attribute__((vector_size(4 * kLanes), may_alias));
typedef int32_t Ints __attribute__((vector_size(4 * kLanes), may_alias));
// Half as many elements.
typedef float HalfFloats __attribute__((vector_size(2 * kLanes), may_alias));
typedef int32_t HalfInts __attribute__((vector_size(2 * kLanes), may_alias));
typedef double Doubles __attribute__((vector_size(4 * kLanes), may_alias));
typedef int64_t Longs __attribute__((vector_size(4 * kLanes), may_alias));

// As many elements as the name says.
typedef float Four __attribute__((vector_size(16), may_alias));
typedef float Eight __attribute__((vector_size(32), may_alias));

#define RGLD_INLINE static inline __attribute__((always_inline))

// A vector anywhere in memory. (With memcpy instead, GCC keeps some sums in memory that belong into registers.)
template <class V>
struct __attribute__((packed, may_alias)) Anywhere {
    V vector;
};

template <class V, class T>
RGLD_INLINE V load(const T* from) {
    return reinterpret_cast<const Anywhere<V>*>(from)->vector;
}

template <class V, class T>
RGLD_INLINE void store(T* to, V v) {
    reinterpret_cast<Anywhere<V>*>(to)->vector = v;
}

// The same vector in a register. (Of a value that is used several times, GCC may read the memory again each time.)
RGLD_INLINE Floats in_register(Floats v) {
#if defined(__AVX512F__)
    asm("" : "+v"(v));
#elif defined(__SSE2__)
    asm("" : "+x"(v));
#elif defined(__ARM_NEON)
    asm("" : "+w"(v));
#endif
    return v;
}

RGLD_INLINE Floats splat(float x) { return x - Floats{}; }
RGLD_INLINE Ints splat(int32_t x) { return x - Ints{}; }

RGLD_INLINE Ints smaller(Ints a, Ints b) { return a < b ? a : b; }
RGLD_INLINE Ints larger(Ints a, Ints b) { return a < b ? b : a; }

// Of numbers that are not negative, so that their bits order as they do; none is NaN or -0. Processors with AVX2 have
// more units for the minima of integers, those with AVX-512 for the minima of floats.
RGLD_INLINE Floats smaller(Floats a, Floats b) {
#if defined(__AVX512F__)
    return (Floats)_mm512_min_ps((__m512)a, (__m512)b);
#elif defined(__AVX2__)
    return (Floats)smaller((Ints)a, (Ints)b);
#elif defined(__SSE2__)
    return (Floats)_mm_min_ps((__m128)a, (__m128)b);
#elif defined(__ARM_NEON)
    return (Floats)vminq_f32((float32x4_t)a, (float32x4_t)b);
#else
    return a < b ? a : b;
#endif
}
RGLD_INLINE Floats larger(Floats a, Floats b) {
#if defined(__AVX512F__)
    return (Floats)_mm512_max_ps((__m512)a, (__m512)b);
#elif defined(__AVX2__)
    return (Floats)larger((Ints)a, (Ints)b);
#elif defined(__SSE2__)
    return (Floats)_mm_max_ps((__m128)a, (__m128)b);
#elif defined(__ARM_NEON)
    return (Floats)vmaxq_f32((float32x4_t)a, (float32x4_t)b);
#else
    return a < b ? b : a;
#endif
}

RGLD_INLINE bool any(Ints mask) {
#if defined(__AVX512F__)
    return _mm512_test_epi32_mask((__m512i)mask, (__m512i)mask) != 0;
#elif defined(__AVX2__)
    return !_mm256_testz_si256((__m256i)mask, (__m256i)mask);
#elif defined(__SSE2__)
    return _mm_movemask_epi8((__m128i)mask) != 0;
#elif defined(__ARM_NEON)
    return vmaxvq_u32((uint32x4_t)mask) != 0;
#else
    int32_t all = 0;
    for (int lane = 0; lane < kLanes; ++lane) all |= mask[lane];
    return all != 0;
#endif
}

RGLD_INLINE Floats square_root(Floats x) {
#if defined(__AVX512F__)
    return (Floats)_mm512_maskz_sqrt_ps(__mmask16(-1), (__m512)x);
#elif defined(__AVX2__)
    return (Floats)_mm256_sqrt_ps((__m256)x);
#elif defined(__SSE2__)
    return (Floats)_mm_sqrt_ps((__m128)x);
#elif defined(__ARM_NEON)
    return (Floats)vsqrtq_f32((float32x4_t)x);
#else
    for (int lane = 0; lane < kLanes; ++lane) x[lane] = __builtin_sqrtf(x[lane]);
    return x;
#endif
}

RGLD_INLINE Doubles square_root(Doubles x) {
#if defined(__AVX512F__)
    return (Doubles)_mm512_maskz_sqrt_pd(__mmask8(-1), (__m512d)x);
#elif defined(__AVX2__)
    return (Doubles)_mm256_sqrt_pd((__m256d)x);
#elif defined(__SSE2__)
    return (Doubles)_mm_sqrt_pd((__m128d)x);
#else
    for (int lane = 0; lane < kLanes / 2; ++lane) x[lane] = __builtin_sqrt(x[lane]);
    return x;
#endif
}

// a * b + c, rounded once where the processor can. AVX2, AVX-512 and NEON give the same bits; the baseline of x86-64
// rounds twice.
RGLD_INLINE Floats fused(Floats a, Floats b, Floats c) {
#if defined(__AVX512F__)
    return (Floats)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__)
    return (Floats)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(__ARM_NEON)
    return (Floats)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
    return a * b + c;
#endif
}

}  // namespace RGLD_NAMESPACE
