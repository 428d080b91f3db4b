// Draws without replacement: the numbers that NumPy's `Generator.choice(n, size, replace=False)` gives, to the bit and
// with the generator left in the same state, for many draws in one call. A fit makes up to a hundred of some dozen rows
// each, and a call from Python takes several times as long as such a draw.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace rgld {

// NumPy's public C interface of a bit generator (numpy/random/bitgen.h).
struct BitGenerator {
    void* state;
    uint64_t (*next_uint64)(void* state);
    uint32_t (*next_uint32)(void* state);
    double (*next_double)(void* state);
    uint64_t (*next_raw)(void* state);
};

// A whole number from 0 to `last`, which is below 2^32 - 1 (Lemire's method).
inline uint32_t draw_up_to(const BitGenerator& generator, uint32_t last) {
    if (last == 0) return 0;
    const uint32_t n = last + 1;
    uint64_t product = uint64_t(generator.next_uint32(generator.state)) * n;
    if (uint32_t(product) < n) {
        const uint32_t threshold = (UINT32_MAX - last) % n;
        while (uint32_t(product) < threshold) product = uint64_t(generator.next_uint32(generator.state)) * n;
    }
    return uint32_t(product >> 32);
}

// Shuffles places `first` .. n - 1 with all places below them.
inline void shuffle_end(const BitGenerator& generator, int64_t* values, size_t n, size_t first) {
    for (size_t i = n; i-- > first;) std::swap(values[draw_up_to(generator, uint32_t(i))], values[i]);
}

// Draws `size` different numbers below n, `count` times: (count, size). n is below 2^32 - 1, and size at most n.
inline void draw_without_replacement(const BitGenerator& generator, size_t n, size_t size, size_t count,
                                     int64_t* drawn) {
    constexpr size_t kMany = 10000, kShare = 50;  // NumPy's choice between its two methods
    if (n > kMany && size > n / kShare) {
        std::vector<int64_t> all(n);
        for (size_t t = 0; t < count; ++t, drawn += size) {
            std::iota(all.begin(), all.end(), 0);
            shuffle_end(generator, all.data(), n, n - size > 1 ? n - size : 1);
            for (size_t i = 0; i < size; ++i) drawn[i] = all[n - size + i];
        }
        return;
    }
    // Floyd's method: each new number may come from one more than the number before it.
    std::vector<uint32_t> drawn_in(n, 0);
    for (size_t t = 0; t < count; ++t, drawn += size) {
        for (size_t i = 0, last = n - size; i < size; ++i, ++last) {
            size_t value = draw_up_to(generator, uint32_t(last));
            if (drawn_in[value] == t + 1) value = last;
            drawn_in[value] = uint32_t(t + 1);
            drawn[i] = int64_t(value);
        }
        shuffle_end(generator, drawn, size, 1);
    }
}

}  // namespace rgld
