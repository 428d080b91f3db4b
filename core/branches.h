// The two branches, prepared for the kernels, and what is learned from rows and asked about them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels.h"
#include "parallel.h"
#include "ranks.h"
#include "table.h"

namespace rgld {

// T views: features S_t (T, m), and a matrix (T, m, n_out) that each is multiplied with. A view of fewer features or
// dimensions has rows or columns of zeros at the end, which are left out.
struct Views {
    size_t n_views, n_features, n_out;
    std::vector<int32_t> features;     // (T, m)
    std::vector<size_t> n_used, dims;  // (T): rows and columns that are not zeros at the end

    Views(size_t n_views, size_t n_features, size_t n_out, std::vector<int32_t> features,
          const std::vector<float>& matrices);

    const int32_t* features_of(size_t t) const { return features.data() + t * n_features; }
    // (n_used[t], dims[t])
    const float* projection_of(size_t t) const { return projection.data() + offset[t]; }
    void project(size_t t, const float* columns, size_t stride, size_t n_rows, float* out, size_t out_stride) const {
        kernels().project(columns, stride, n_rows, features_of(t), n_used[t], projection_of(t), dims[t], out, out_stride);
    }
    void project_fused(size_t t, const float* columns, size_t stride, size_t n_rows, float* out,
                       size_t out_stride) const {
        kernels().project_fused(columns, stride, n_rows, features_of(t), n_used[t], projection_of(t), dims[t], out,
                                out_stride);
    }
    // Projected rows are held for so many rows at a time: a share of the cache, whatever n_out is.
    size_t chunk() const { return std::min<size_t>(512, std::max(kPack, 8192 / n_out / kPack * kPack)); }

  private:
    std::vector<float> projection;
    std::vector<size_t> offset;
};

class Branch {
  public:
    virtual ~Branch() = default;
    virtual size_t n_views() const = 0;
    // Floats that view_scores needs.
    virtual size_t scratch() const = 0;
    virtual void view_scores(size_t t, const float* columns, size_t stride, size_t n_rows, float* scratch,
                             float* scores) const = 0;
};

class GlobalBranch : public Branch {
  public:
    // directions (T, m, D) lead from scaled features to angles at multiplier 1; weights (T, M, D) and constants (T)
    // are those of GlobalView, for bandwidths from the widest to the narrowest.
    GlobalBranch(Views directions, std::vector<double> multipliers, std::vector<float> cos_weights,
                 std::vector<float> sin_weights, std::vector<float> constants);

    size_t n_views() const override { return directions_.n_views; }
    size_t scratch() const override { return directions_.n_out * directions_.chunk(); }
    void view_scores(size_t t, const float* columns, size_t stride, size_t n_rows, float* scratch,
                     float* scores) const override;

    size_t n_bandwidths() const { return factors_.size(); }
    size_t n_random_features() const { return directions_.n_out; }

    // Sums over rows of phi, (T, M, D), and of phi phi^T, (T, M, D, D); the weights must be those of phi.
    void embedding_sums(const Rows& rows, const Run& run, double* phi, double* phi_phi) const;

  private:
    GlobalView view(size_t t) const;

    Views directions_;
    std::vector<float> factors_, cos_weights_, sin_weights_, constants_;
    std::vector<uint8_t> doubled_;
};

class LocalBranch : public Branch {
  public:
    LocalBranch(Views views, const float* references, size_t n_references, size_t n_neighbors);

    size_t n_views() const override { return views_.n_views; }
    size_t scratch() const override { return views_.n_out * views_.chunk() + local_scratch(n_neighbors_); }
    void view_scores(size_t t, const float* columns, size_t stride, size_t n_rows, float* scratch,
                     float* scores) const override;

  private:
    Views views_;
    size_t n_references_, n_neighbors_;  // references padded to whole batches
    std::vector<float> references_;      // (T, r, n_references)
};

// The frozen distributions of a branch. Its view scores are ranked, each by its distribution, or standardized; the mean is
// ranked by the branch's distribution.
struct BranchRanks {
    std::vector<Cdf<float>> views;    // (T), or none ...
    std::vector<Standard> standards;  // ... and one of these for each view
    Bounds bounds;                    // of standardized scores
    Cdf<double> branch;
    double unit;  // rank_unit

    size_t n_views() const { return views.size() + standards.size(); }
    double mean(double sum) const { return mean_rank(sum, n_views(), standards.empty() ? unit : 1.0); }
    // Adds what view t makes of the scores; they may be overwritten.
    void add(size_t t, float* scores, size_t n, double* sums) const;
};

struct CdfRules {
    size_t exact_size;
    std::vector<double> grid;
    double smallest_range;
};

// For view scores that are standardized: `smallest` of each view's Standard.
struct StandardRules {
    std::vector<float> smallest;  // (T); none: the scores are ranked
    double smallest_scale;
    Bounds bounds;
};

struct FittedRanks {
    std::unique_ptr<BranchRanks> ranks;
    std::vector<double> scores;  // of the training rows
};

// The numbered rows of each view, numbers (T, count), projected by that view, (T, r, count).
void project_rows(const Rows& rows, const Views& views, const int64_t* numbers, size_t count, const Run& run,
                  float* projected);

// Of the distances of pairs of the numbered rows in each view: the median and, where that is not above `smallest`, the
// mean of those that are (0 if there is none). The pairs are all rows with the next, then with the second next, and so
// on, around the end; at most n_numbers - 1 times.
void pair_distances(const Rows& rows, const Views& views, const int64_t* numbers, size_t n_numbers, size_t n_pairs,
                    double smallest, const Run& run, double* median, double* mean_positive);

// The distributions of the training rows' scores. The view scores of all rows are held for as many views as fit a
// budget, never for all views of a long table.
FittedRanks fit_ranks(const Rows& rows, const Branch& branch, const CdfRules& rules, const StandardRules& standard_rules,
                      const Run& run);

// Scores of all rows in all views, (T, n).
void view_scores(const Rows& rows, const Branch& branch, const Run& run, float* scores);

struct RankedBranch {
    const Branch* branch;
    const BranchRanks* ranks;
    double* scores;  // (n), written
    bool ranked;     // else the scores are the means over the views
};

// Branch scores of all rows, block by block through all views of all branches.
void score(const Rows& rows, const std::vector<RankedBranch>& branches, const Run& run);

}  // namespace rgld
