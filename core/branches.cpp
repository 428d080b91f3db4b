#include "branches.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>

namespace rgld {
namespace {

constexpr size_t kSlabFloats = 48 * 1024 * 1024;  // 192 MiB of view scores at a time
constexpr size_t kColumnGroups = 4;               // tasks that read columns, for a few threads ...
constexpr size_t kMinColumns = 64;                // ... of so many columns: fewer take less time than a thread's start
constexpr size_t kFewRuns = 8;

// Working memory of each thread, allocated when the thread first needs it and aligned for the widest vector.
class Workspace {
  public:
    explicit Workspace(size_t n_workers) : buffers_(n_workers) {}

    float* get(size_t worker, size_t size) {
        auto& buffer = buffers_[worker];
        if (buffer.size() < size + kPack) buffer.resize(size + kPack);
        const size_t off = reinterpret_cast<uintptr_t>(buffer.data()) / sizeof(float) % kPack;
        return buffer.data() + (kPack - off) % kPack;
    }

  private:
    std::vector<std::vector<float>> buffers_;
};

size_t workers(const Run& run) { return size_t(std::max(run.n_threads, 1)); }

}  // namespace

// ---- branches

Views::Views(size_t n_views, size_t n_features, size_t n_out, std::vector<int32_t> features,
             const std::vector<float>& matrices)
    : n_views(n_views), n_features(n_features), n_out(n_out), features(std::move(features)) {
    for (size_t t = 0; t < n_views; ++t) {
        const float* matrix = matrices.data() + t * n_features * n_out;
        size_t rows = 1, columns = 1;
        for (size_t j = 0; j < n_features; ++j)
            for (size_t c = 0; c < n_out; ++c)
                if (matrix[j * n_out + c] != 0.0f) rows = j + 1, columns = std::max(columns, c + 1);
        offset.push_back(projection.size());
        n_used.push_back(rows);
        dims.push_back(columns);
        for (size_t j = 0; j < rows; ++j)
            projection.insert(projection.end(), matrix + j * n_out, matrix + j * n_out + columns);
    }
}

GlobalBranch::GlobalBranch(Views directions, std::vector<double> multipliers, std::vector<float> cos_weights,
                           std::vector<float> sin_weights, std::vector<float> constants)
    : directions_(std::move(directions)),
      cos_weights_(std::move(cos_weights)),
      sin_weights_(std::move(sin_weights)),
      constants_(std::move(constants)) {
    for (size_t m = 0; m < multipliers.size(); ++m) {
        factors_.push_back(float(1.0 / multipliers[m]));
        doubled_.push_back(m > 0 && multipliers[m - 1] == 2.0 * multipliers[m]);
    }
}

GlobalView GlobalBranch::view(size_t t) const {
    const size_t D = directions_.n_out, M = factors_.size();
    return {D,
            M,
            factors_.data(),
            doubled_.data(),
            cos_weights_.data() + t * M * D,
            sin_weights_.data() + t * M * D,
            constants_[t]};
}

void GlobalBranch::view_scores(size_t t, const float* columns, size_t stride, size_t n_rows, float* scratch,
                               float* scores) const {
    const size_t chunk = directions_.chunk();
    for (size_t start = 0; start < n_rows; start += chunk) {
        const size_t count = std::min(chunk, n_rows - start);
        directions_.project_fused(t, columns + start, stride, count, scratch, chunk);
        kernels().global_scores(view(t), scratch, chunk, count, scores + start);
    }
}

namespace {

// Squares (D, D) of which only the upper triangle was added up.
void mirror(double* squares, size_t count, size_t D) {
    for (size_t square = 0; square < count; ++square, squares += D * D)
        for (size_t a = 0; a < D; ++a)
            for (size_t b = 0; b < a; ++b) squares[a * D + b] = squares[b * D + a];
}

}  // namespace

void GlobalBranch::embedding_sums(const Rows& rows, const Run& run, double* phi, double* phi_phi) const {
    const size_t T = n_views(), D = directions_.n_out, M = factors_.size(), stride = rows.stride();
    const size_t size = T * M * D * (D + 1);
    const SumRuns runs(rows.n_blocks(), size);
    // Not set to 0 here: each task does it for its own sums, so that the threads share the first touch of the memory.
    std::unique_ptr<double[]> partial(new double[runs.count * size]);
    Workspace workspace(workers(run));
    // Large sums allow few runs, too few for the threads: each view is then a task of its own.
    const size_t n_groups = runs.count < kFewRuns ? T : 1, views_per_group = T / n_groups;
    run_tasks(run, runs.count * n_groups, [&](size_t task, size_t worker) {
        const size_t part = task / n_groups, first_view = task % n_groups * views_per_group;
        const size_t angles_size = D * kSumRows, columns_size = rows.n_columns() * stride;
        float* angles = workspace.get(worker, columns_size + angles_size + embedding_scratch(D, M)) + columns_size;
        double* phi_sum = partial.get() + part * size;
        double* phi_phi_sum = phi_sum + T * M * D;
        std::fill_n(phi_sum + first_view * M * D, views_per_group * M * D, 0.0);
        std::fill_n(phi_phi_sum + first_view * M * D * D, views_per_group * M * D * D, 0.0);
        for (size_t block = runs.begin(part); block < runs.end(part); ++block) {
            const float* columns = rows.columns(block, angles - columns_size);
            for (size_t t = first_view; t < first_view + views_per_group; ++t) {
                for (size_t start = 0; start < rows.n_rows(block); start += kSumRows) {
                    const size_t count = std::min(kSumRows, rows.n_rows(block) - start);
                    directions_.project_fused(t, columns + start, stride, count, angles, kSumRows);
                    kernels().embedding_sums(view(t), angles, count, angles + angles_size, phi_sum + t * M * D,
                                             phi_phi_sum + t * M * D * D);
                }
            }
        }
    });
    std::fill(phi, phi + T * M * D, 0.0);
    std::fill(phi_phi, phi_phi + T * M * D * D, 0.0);
    for (size_t part = 0; part < runs.count; ++part) {
        const double* from = partial.get() + part * size;
        for (size_t i = 0; i < T * M * D; ++i) phi[i] += from[i];
        for (size_t i = 0; i < T * M * D * D; ++i) phi_phi[i] += from[T * M * D + i];
    }
    mirror(phi_phi, T * M, D);
}

std::vector<float> pack_root(const float* root, size_t n_features) {
    std::vector<float> packed;
    for (size_t first = 0; first < n_features; first += kRootRows)
        for (size_t j = 0; j < first + kRootRows; ++j)
            for (size_t a = first; a < first + kRootRows; ++a)
                packed.push_back(a < n_features && j <= a ? root[a * n_features + j] : 0.0f);
    return packed;
}

LeverageBranch::LeverageBranch(Views views, size_t n_cosines, std::vector<float> linear, std::vector<float> frequencies,
                               std::vector<float> phases, std::vector<float> mean, const std::vector<float>& root)
    : views_(std::move(views)),
      n_cosines_(n_cosines),
      linear_(std::move(linear)),
      frequencies_(std::move(frequencies)),
      phases_(std::move(phases)),
      mean_(std::move(mean)) {
    const size_t P = n_features();
    for (size_t t = 0; t < views_.n_views; ++t) roots_.push_back(pack_root(root.data() + t * P * P, P));
}

LeverageView LeverageBranch::view(size_t t) const {
    return {views_.n_out,
            n_cosines_,
            linear_[t],
            frequencies_.data() + t * n_cosines_ * views_.n_out,
            phases_.data() + t * n_cosines_,
            mean_.data() + t * n_features(),
            roots_[t].data()};
}

void LeverageBranch::view_scores(size_t t, const float* columns, size_t stride, size_t n_rows, float* scratch,
                                 float* scores) const {
    const size_t r = views_.n_out, chunk = views_.chunk();
    for (size_t start = 0; start < n_rows; start += chunk) {
        const size_t count = std::min(chunk, n_rows - start);
        views_.project_fused(t, columns + start, stride, count, scratch, chunk);
        kernels().leverage_scores(view(t), scratch, chunk, count, scratch + r * chunk, scores + start);
    }
}

void LeverageBranch::sums(const Rows& rows, const int64_t* indices, size_t count, const Run& run, double* phi,
                          double* phi_phi) const {
    const size_t T = n_views(), P = n_features();
    std::fill(phi, phi + T * P, 0.0);
    std::fill(phi_phi, phi_phi + T * P * P, 0.0);
    Workspace workspace(workers(run));
    run_tasks(run, T, [&](size_t t, size_t worker) {
        const size_t m = views_.n_used[t], z_size = views_.n_out * kSumRows;
        float* columns = workspace.get(worker, m * kSumRows + z_size + kSumRows * P + sum_scratch(P));
        float* z = columns + m * kSumRows;
        std::vector<int32_t> all(m);
        std::iota(all.begin(), all.end(), 0);
        for (size_t start = 0; start < count; start += kSumRows) {
            const size_t n = std::min(kSumRows, count - start);
            rows.take(indices + start, n, views_.features_of(t), m, columns, kSumRows);
            kernels().project_fused(columns, kSumRows, n, all.data(), m, views_.projection_of(t), views_.dims[t], z,
                                    kSumRows);
            std::fill(z + views_.dims[t] * kSumRows, z + z_size, 0.0f);
            kernels().leverage_sums(view(t), z, n, z + z_size, phi + t * P, phi_phi + t * P * P);
        }
    });
    mirror(phi_phi, T, P);
}

LocalBranch::LocalBranch(Views views, const float* references, size_t n_references, size_t n_neighbors)
    : views_(std::move(views)), n_references_(padded(n_references, kBatch)), n_neighbors_(n_neighbors) {
    const size_t n = views_.n_views * views_.n_out;
    references_.assign(n * n_references_, std::numeric_limits<float>::infinity());
    for (size_t c = 0; c < n; ++c)
        std::copy(references + c * n_references, references + (c + 1) * n_references,
                  references_.begin() + ptrdiff_t(c * n_references_));
}

void LocalBranch::view_scores(size_t t, const float* columns, size_t stride, size_t n_rows, float* scratch,
                              float* scores) const {
    const size_t r = views_.n_out, chunk = views_.chunk();
    for (size_t start = 0; start < n_rows; start += chunk) {
        const size_t count = std::min(chunk, n_rows - start);
        views_.project(t, columns + start, stride, count, scratch, chunk);
        kernels().local_scores(scratch, chunk, count, views_.dims[t], references_.data() + t * r * n_references_,
                               n_references_, n_neighbors_, scratch + r * chunk, scores + start);
    }
}

// ---- learning from training rows

namespace {

// The rows with these indices, projected by one view: (r, stride).
std::vector<float> projected_rows(const Rows& rows, const Views& views, size_t t, const int64_t* indices,
                                  size_t count) {
    const size_t stride = padded(count, kPack);
    const size_t m = views.n_used[t];
    std::vector<float> columns(m * stride), z(views.n_out * stride);
    rows.take(indices, count, views.features_of(t), m, columns.data(), stride);
    std::vector<int32_t> all(m);
    std::iota(all.begin(), all.end(), 0);
    kernels().project(columns.data(), stride, count, all.data(), m, views.projection_of(t), views.dims[t], z.data(),
                      stride);
    return z;
}

// The largest key. Several maxima side by side, because each comparison has to wait for the one before.
uint32_t largest_of(const std::vector<uint32_t>& keys) {
    constexpr size_t kMaxima = 16;
    uint32_t largest[kMaxima] = {};
    size_t i = 0;
    for (; i + kMaxima <= keys.size(); i += kMaxima)
        for (size_t m = 0; m < kMaxima; ++m) largest[m] = std::max(largest[m], keys[i + m]);
    for (; i < keys.size(); ++i) largest[0] = std::max(largest[0], keys[i]);
    return *std::max_element(largest, largest + kMaxima);
}

// The median of the square roots; of an even number of values, the mean of the two in the middle. The values are not
// negative, so their bits order as they do; and integers have an order even if a value is NaN.
//
// Counting the values in buckets first leaves few for nth_element: 4.7 times as fast as nth_element of all values, of
// which a fit has 8192 in each view (`make time-sorts`).
double median_root(const float* squares, size_t n) {
    // 128 buckets to a factor of two, over 16 factors of two below the largest value. The lowest holds all the rest.
    constexpr uint32_t kBuckets = 2048;
    constexpr int kShift = 16;
    std::vector<uint32_t> keys(n);
    std::memcpy(keys.data(), squares, n * sizeof(float));
    const uint32_t highest = largest_of(keys);
    const uint32_t lowest = std::max(highest >> kShift, kBuckets - 1) - (kBuckets - 1);
    const auto bucket = [lowest](uint32_t key) { return std::max(key >> kShift, lowest) - lowest; };
    uint32_t counts[kBuckets] = {};
    for (const uint32_t key : keys) ++counts[bucket(key)];

    // The buckets low .. high hold both values in the middle.
    const size_t upper = n / 2, lower = (n - 1) / 2;
    uint32_t low = 0;
    size_t below = 0;
    while (below + counts[low] <= lower) below += counts[low++];
    uint32_t high = low;
    size_t count = counts[low];
    while (below + count <= upper) count += counts[++high];
    std::vector<uint32_t> middle(count + 1);  // one more to write those to that are left out
    size_t next = 0;
    for (const uint32_t key : keys) {
        middle[next] = key;
        next += bucket(key) - low <= high - low;
    }
    middle.pop_back();
    const auto upper_place = middle.begin() + ptrdiff_t(upper - below);
    std::nth_element(middle.begin(), upper_place, middle.end());
    const auto root = [](uint32_t key) {
        float square;
        std::memcpy(&square, &key, sizeof square);
        return double(std::sqrt(square));
    };
    const uint32_t lower_key = upper == lower ? *upper_place : *std::max_element(middle.begin(), upper_place);
    return 0.5 * (root(lower_key) + root(*upper_place));
}

}  // namespace

void project_rows(const Rows& rows, const Views& views, const int64_t* indices, size_t count, const Run& run,
                  float* projected) {
    run_tasks(run, views.n_views, [&](size_t t, size_t) {
        const std::vector<float> z = projected_rows(rows, views, t, indices + t * count, count);
        const size_t stride = padded(count, kPack), r = views.n_out;
        for (size_t c = 0; c < r; ++c)
            std::copy_n(z.begin() + ptrdiff_t(c * stride), count, projected + (t * r + c) * count);
    });
}

void projected_covariances(const Rows& rows, const Views& views, const int64_t* indices, size_t count, const Run& run,
                           double* covariances) {
    run_tasks(run, views.n_views, [&](size_t t, size_t) {
        const size_t r = views.n_out;
        const std::vector<float> z = projected_rows(rows, views, t, indices, count);
        std::vector<double> scratch(r * (kCovarianceRows + 1));
        kernels().covariance(z.data(), padded(count, kPack), r, count, scratch.data(), covariances + t * r * r);
    });
}

void pair_distances(const Rows& rows, const Views& views, const int64_t* indices, size_t n, size_t n_pairs,
                    double smallest, const Run& run, double* median_distance, double* mean_positive) {
    const size_t d = rows.n_columns(), r = views.n_out, stride = padded(n, kPack);
    const size_t n_steps = (n_pairs - 1) / n + 1, z_stride = padded(stride + n_steps, kPack);
    const size_t squared_size = padded(n_pairs, kPack) + kPack;  // the last pack of each step is written as a whole
    std::vector<float> columns(d * stride);
    const size_t group = std::max(kMinColumns, d / kColumnGroups);
    run_tasks(run, (d + group - 1) / group, [&](size_t task, size_t) {
        const size_t first = task * group, count = std::min(group, d - first);
        std::vector<int32_t> features(count);
        std::iota(features.begin(), features.end(), int32_t(first));
        rows.take(indices, n, features.data(), count, columns.data() + first * stride, stride);
    });
    Workspace workspace(workers(run));
    run_tasks(run, views.n_views, [&](size_t t, size_t worker) {
        float* z = workspace.get(worker, r * z_stride + squared_size);
        float* squared = z + r * z_stride;
        views.project_fused(t, columns.data(), stride, n, z, z_stride);
        for (size_t c = 0; c < views.dims[t]; ++c) std::copy_n(z + c * z_stride, n_steps, z + c * z_stride + n);
        for (size_t start = 0, step = 1; start < n_pairs; start += n, ++step)
            kernels().squared_distances(z, z_stride, views.dims[t], step, std::min(n, n_pairs - start),
                                        squared + start);
        median_distance[t] = median_root(squared, n_pairs);
        mean_positive[t] = 0.0;
        if (median_distance[t] > smallest) return;
        double sum = 0.0, count = 0.0;
        for (size_t p = 0; p < n_pairs; ++p) {
            const double distance = double(std::sqrt(squared[p]));
            if (distance > smallest) sum += distance, count += 1.0;
        }
        mean_positive[t] = count > 0.0 ? sum / count : 0.0;
    });
}

void BranchRanks::add(size_t t, float* scores, size_t n, double* sums) const {
    if (standards.empty()) return views[t].add_ranks(scores, n, sums);
    take_logarithms(standards[t], scores, n);
    add_standardized(standards[t], bounds, scores, n, sums);
}

namespace {

// The scores of all training rows in some views: (count, n).
class Slab {
  public:
    Slab(size_t count, size_t n) : n(n), scores_(new float[count * n]) {}  // written before they are read

    float* of(size_t v) { return scores_.get() + v * n; }

    const size_t n;

  private:
    std::unique_ptr<float[]> scores_;
};

template <class T>
Cdf<T> fit_cdf(const T* scores, size_t n, const CdfRules& rules) {
    std::vector<T> sorted = comparable(scores, n), buffer;
    sort_values(sorted, buffer);
    return Cdf<T>(fit_knots(sorted, rules.exact_size, rules.grid.data(), rules.grid.size()), double(n),
                  rules.smallest_range);
}

// Calls work(first, count) for the rows of each block.
template <class Work>
void over_blocks(const Rows& rows, const Run& run, Work&& work) {
    run_tasks(run, rows.n_blocks(), [&](size_t block, size_t) { work(rows.first_row(block), rows.n_rows(block)); });
}

// The distributions of the views in the slab. Adds the ranks of each row to its sum; overwrites the slab.
//
// In a short table every distinct score is a knot, and sorting the scores tells their ranks: nothing is looked up.
std::vector<Cdf<float>> rank_views(const Rows& rows, Slab& slab, size_t count, const CdfRules& rules, const Run& run,
                                   double* sums) {
    std::vector<std::optional<Cdf<float>>> cdfs(count);
    std::vector<uint8_t> has_levels(count);
    run_tasks(run, count, [&](size_t v, size_t) {
        float* scores = slab.of(v);
        std::vector<Knot<float>> knots;
        if (slab.n <= rules.exact_size) knots = replace_by_levels(scores, slab.n);
        has_levels[v] = !knots.empty();
        if (has_levels[v]) {
            cdfs[v].emplace(std::move(knots), double(slab.n), rules.smallest_range);
        } else {
            cdfs[v].emplace(fit_cdf(scores, slab.n, rules));
        }
    });
    over_blocks(rows, run, [&](size_t first, size_t size) {
        for (size_t v = 0; v < count; ++v) {
            const float* scores = slab.of(v) + first;
            if (has_levels[v]) {
                for (size_t i = 0; i < size; ++i) sums[first + i] += double(scores[i]);
            } else {
                cdfs[v]->add_ranks(scores, size, sums + first);
            }
        }
    });
    std::vector<Cdf<float>> found;
    for (auto& cdf : cdfs) found.push_back(std::move(*cdf));
    return found;
}

// The standards of views start .. start + count - 1. Adds the standardized scores of each row to its sum.
std::vector<Standard> standardize_views(const Rows& rows, Slab& slab, size_t start, size_t count,
                                        const StandardRules& rules, const Run& run, double* sums) {
    std::vector<Standard> standards(count);
    run_tasks(run, count, [&](size_t v, size_t) {
        standards[v].smallest = rules.smallest[start + v];
        take_logarithms(standards[v], slab.of(v), slab.n);
        standards[v] = fit_standard(slab.of(v), slab.n, standards[v].smallest, rules.smallest_scale);
    });
    over_blocks(rows, run, [&](size_t first, size_t size) {
        for (size_t v = 0; v < count; ++v)
            add_standardized(standards[v], rules.bounds, slab.of(v) + first, size, sums + first);
    });
    return standards;
}

// The scaled columns that some branches look at.
Used used_columns(const Rows& rows, const std::vector<const Branch*>& branches) {
    Used used(rows.n_columns());
    for (const Branch* branch : branches)
        for (const int32_t feature : branch->views().features) used[size_t(feature)] = 1;
    return used;
}

}  // namespace

FittedRanks fit_ranks(const Rows& rows, const Branch& branch, const CdfRules& rules,
                      const StandardRules& standard_rules, const Run& run) {
    const size_t n = rows.n_rows(), T = branch.n_views(), stride = rows.stride();
    const size_t columns_size = rows.n_columns() * stride;
    const size_t group = std::min(T, std::max<size_t>(1, kSlabFloats / n));
    Workspace workspace(workers(run));
    Slab slab(group, n);
    const Used used = used_columns(rows, {&branch});
    std::vector<double> sums(n);
    std::vector<Cdf<float>> views;
    std::vector<Standard> standards;
    for (size_t start = 0; start < T; start += group) {
        const size_t count = std::min(group, T - start);
        run_tasks(run, rows.n_blocks(), [&](size_t block, size_t worker) {
            float* buffer = workspace.get(worker, columns_size + stride + branch.scratch());
            float* scores = buffer + columns_size;
            const float* columns = rows.columns(block, buffer, used);
            for (size_t v = 0; v < count; ++v) {
                branch.view_scores(start + v, columns, stride, rows.n_rows(block), scores + stride, scores);
                std::copy(scores, scores + rows.n_rows(block), slab.of(v) + rows.first_row(block));
            }
        });
        if (standard_rules.smallest.empty()) {
            for (auto& cdf : rank_views(rows, slab, count, rules, run, sums.data())) views.push_back(std::move(cdf));
        } else {
            const auto found = standardize_views(rows, slab, start, count, standard_rules, run, sums.data());
            standards.insert(standards.end(), found.begin(), found.end());
        }
    }
    const double unit = rank_unit(double(n)), sum_unit = standards.empty() ? unit : 1.0;
    for (double& sum : sums) sum = mean_rank(sum, T, sum_unit);
    FittedRanks fitted;
    fitted.scores.assign(n, 0.0);
    Cdf<double> cdf = fit_cdf(sums.data(), n, rules);
    over_blocks(rows, run, [&](size_t first, size_t size) {
        cdf.add_ranks(sums.data() + first, size, fitted.scores.data() + first);
        for (size_t i = first; i < first + size; ++i) fitted.scores[i] /= unit;
    });
    fitted.ranks = std::make_unique<BranchRanks>(
        BranchRanks{std::move(views), std::move(standards), standard_rules.bounds, std::move(cdf), unit});
    return fitted;
}

// ---- scores of any rows

void view_scores(const Rows& rows, const Branch& branch, const Run& run, float* scores) {
    const size_t stride = rows.stride(), columns_size = rows.n_columns() * stride;
    const Used used = used_columns(rows, {&branch});
    Workspace workspace(workers(run));
    run_tasks(run, rows.n_blocks(), [&](size_t block, size_t worker) {
        float* buffer = workspace.get(worker, columns_size + stride + branch.scratch());
        const float* columns = rows.columns(block, buffer, used);
        for (size_t t = 0; t < branch.n_views(); ++t) {
            branch.view_scores(t, columns, stride, rows.n_rows(block), buffer + columns_size + stride,
                               buffer + columns_size);
            std::copy(buffer + columns_size, buffer + columns_size + rows.n_rows(block),
                      scores + t * rows.n_rows() + rows.first_row(block));
        }
    });
}

void score(const Rows& rows, const std::vector<RankedBranch>& branches, const Run& run) {
    const size_t stride = rows.stride(), columns_size = rows.n_columns() * stride;
    size_t scratch = 0;
    std::vector<const Branch*> every;
    for (const RankedBranch& ranked : branches) {
        scratch = std::max(scratch, ranked.branch->scratch());
        every.push_back(ranked.branch);
    }
    const Used used = used_columns(rows, every);
    Workspace workspace(workers(run));
    run_tasks(run, rows.n_blocks(), [&](size_t block, size_t worker) {
        float* buffer = workspace.get(worker, columns_size + stride + scratch);
        float* view_scores = buffer + columns_size;
        const float* columns = rows.columns(block, buffer, used);
        const size_t count = rows.n_rows(block);
        for (const RankedBranch& ranked : branches) {
            std::vector<double> sums(count);
            const size_t T = ranked.branch->n_views();
            for (size_t t = 0; t < T; ++t) {
                ranked.branch->view_scores(t, columns, stride, count, view_scores + stride, view_scores);
                ranked.ranks->add(t, view_scores, count, sums.data());
            }
            double* scores = ranked.scores + rows.first_row(block);
            for (double& sum : sums) sum = ranked.ranks->mean(sum);
            if (!ranked.ranked) {
                std::copy(sums.begin(), sums.end(), scores);
                continue;
            }
            std::fill(scores, scores + count, 0.0);
            ranked.ranks->branch->add_ranks(sums.data(), count, scores);
            for (size_t i = 0; i < count; ++i) scores[i] /= ranked.ranks->unit;
        }
    });
}

}  // namespace rgld
