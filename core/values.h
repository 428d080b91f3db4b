// Counts of pairs of values. The NumPy twin is `count_pairs` of src/rgld/_kernels/numpy_kernels.py.
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

}  // namespace rgld
