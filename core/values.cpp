#include "values.h"

#include <algorithm>

namespace rgld {
namespace {

// Neighbouring rows often have the same values. Counting them in different places keeps one from waiting for the other.
constexpr size_t kPlaces = 4;

void count_pair(const uint8_t* a, const uint8_t* b, size_t n_rows, size_t n_b, size_t n_cells, int32_t* places) {
    std::fill_n(places, kPlaces * n_cells, 0);
    size_t i = 0;
    for (; i + kPlaces <= n_rows; i += kPlaces)
        for (size_t k = 0; k < kPlaces; ++k) ++places[k * n_cells + a[i + k] * n_b + b[i + k]];
    for (; i < n_rows; ++i) ++places[a[i] * n_b + b[i]];
}

}  // namespace

void count_pairs(const uint8_t* codes, size_t n_rows, const std::vector<size_t>& sizes, const Run& run,
                 int32_t* counts) {
    const size_t n_columns = sizes.size();
    std::vector<size_t> start(n_columns + 1, 0);
    for (size_t c = 0; c < n_columns; ++c) start[c + 1] = start[c] + sizes[c];
    const size_t width = start[n_columns];
    run_tasks(run, n_columns, [&](size_t a, size_t) {
        std::vector<int32_t> places;
        for (size_t b = a + 1; b < n_columns; ++b) {
            const size_t n_cells = sizes[a] * sizes[b];
            places.resize(std::max(places.size(), kPlaces * n_cells));
            count_pair(codes + a * n_rows, codes + b * n_rows, n_rows, sizes[b], n_cells, places.data());
            for (size_t u = 0; u < sizes[a]; ++u)
                for (size_t v = 0; v < sizes[b]; ++v) {
                    int32_t found = 0;
                    for (size_t k = 0; k < kPlaces; ++k) found += places[k * n_cells + u * sizes[b] + v];
                    counts[(start[a] + u) * width + start[b] + v] = found;
                    counts[(start[b] + v) * width + start[a] + u] = found;
                }
        }
    });
}

}  // namespace rgld
