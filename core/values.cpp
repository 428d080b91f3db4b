#include "values.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "ranks.h"

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

constexpr size_t kSampled = 128;      // values that tell between which two the wanted one is ...
constexpr size_t kSlack = 14;         // ... so many sampled ones to either side: 2.5 standard deviations at the middle
constexpr size_t kShortSelect = 256;  // fewer values are not sampled

bool is_before(double a, double b) { return a < b || (std::isnan(b) && !std::isnan(a)); }

double nth(double* values, size_t n, size_t place) {
    std::nth_element(values, values + place, values + n, is_before);
    return values[place];
}

// For 4,096 normal values, an eighth to a tenth of the time of NumPy's sort or partition without vectors.
double value_among(double* values, size_t n, size_t place) {
    if (n < kShortSelect) return nth(values, n, place);
    double sampled[kSampled];
    for (size_t s = 0; s < kSampled; ++s) sampled[s] = values[(2 * s + 1) * n / (2 * kSampled)];
    const size_t at = place * kSampled / n;
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const double low = at < kSlack ? -kInfinity : nth(sampled, kSampled, at - kSlack);
    const double high = at + kSlack >= kSampled ? kInfinity : nth(sampled, kSampled, at + kSlack);
    const std::unique_ptr<double[]> between(new double[n + 1]);  // the last is written, but never kept
    size_t n_below = 0, n_between = 0;
    for (size_t i = 0; i < n; ++i) {  // no branch: the processor would mispredict it
        const double value = values[i];
        between[n_between] = value;
        n_below += value < low;
        n_between += (value >= low) & (value <= high);
    }
    if (place < n_below || place >= n_below + n_between) return nth(values, n, place);
    if (low == high) return low;
    if (n_between > n / 2) return nth(between.get(), n_between, place - n_below);  // many are equal
    return value_among(between.get(), n_between, place - n_below);
}

}  // namespace

double value_at(std::vector<double>& values, size_t place) { return value_among(values.data(), values.size(), place); }

void sort_rows(double* rows, size_t n_rows, size_t n, const Run& run) {
    run_tasks(run, n_rows, [&](size_t i, size_t) {
        std::vector<double> values(rows + i * n, rows + (i + 1) * n), buffer;
        for (double& value : values)
            if (std::isnan(value)) value = std::numeric_limits<double>::quiet_NaN();  // without a sign: it comes last
        sort_values(values, buffer);
        std::copy(values.begin(), values.end(), rows + i * n);
    });
}

void invert_triangle(const double* triangle, size_t n, double* inverse) {
    for (size_t i = 0; i < n; ++i) {
        double* row = inverse + i * n;
        std::fill(row, row + n, 0.0);
        for (size_t k = 0; k < i; ++k) {
            const double factor = triangle[i * n + k];
            const double* above = inverse + k * n;
            for (size_t j = 0; j <= k; ++j) row[j] -= factor * above[j];
        }
        for (size_t j = 0; j < i; ++j) row[j] /= triangle[i * n + i];
        row[i] = 1.0 / triangle[i * n + i];
    }
}

double find_partners(const double* covariance, size_t n, size_t target, const int64_t* columns, PartnerRules rules,
                     int64_t* partners) {
    const auto whole = [&](size_t i) { return covariance[i * n + i]; };
    // Of what is left open: variances, and covariances with the target. A column of `steps` is a feature.
    std::vector<double> variance(n), left(covariance + target * n, covariance + (target + 1) * n), steps;
    std::vector<char> is_free(n);
    for (size_t i = 0; i < n; ++i) {
        variance[i] = whole(i);
        is_free[i] = columns[i] != columns[target];
    }
    std::fill_n(partners, rules.max_partners, -1);
    for (size_t n_steps = 0;; ++n_steps) {
        const double open = left[target];
        size_t best = 0;
        double most = -1.0, explained = 0.0;
        for (size_t i = 0; i < n && !std::isnan(most); ++i) {
            double own = 0.0;
            if (is_free[i] && variance[i] > 1e-8 * whole(i)) own = left[i] * left[i] / std::max(variance[i], 1e-300);
            const double rounded = std::nearbyint(own * 1e12) / 1e12;  // what is equal on paper is equal
            if (!(rounded <= most)) best = i, most = rounded, explained = own;
        }
        const bool goes_on =
            n_steps < rules.max_partners && explained >= rules.min_gain * open && open > 1e-12 * whole(target);
        if (!goes_on) return std::sqrt(std::max(open, 0.0) / whole(target));
        partners[n_steps] = int64_t(best);
        is_free[best] = false;
        // One step of a Cholesky factorization: only the row of the new partner is needed of what is left.
        std::vector<double> known(n);
        for (size_t k = 0; k < n_steps; ++k) {
            const double* before = steps.data() + k * n;
            const double factor = before[best];
            for (size_t i = 0; i < n; ++i) known[i] += factor * before[i];
        }
        steps.resize((n_steps + 1) * n);
        double* step = steps.data() + n_steps * n;
        for (size_t i = 0; i < n; ++i) step[i] = covariance[best * n + i] - known[i];
        const double root = std::sqrt(step[best]);
        for (size_t i = 0; i < n; ++i) step[i] /= root;
        const double factor = step[target];
        for (size_t i = 0; i < n; ++i) {
            variance[i] -= step[i] * step[i];
            left[i] -= factor * step[i];
        }
    }
}

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
