// The two branches, prepared for the kernels: what is learned from training rows, and the scores of any rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "kernels.h"
#include "parallel.h"
#include "ranks.h"
#include "table.h"

namespace rgld {

// T views: each takes features S_t and multiplies them with a matrix. All matrices together are (T, m, n_out); a view
// of fewer features or dimensions has rows or columns of zeros at the end, which are left out.
struct Views {
    size_t n_views, n_features, n_out;
    std::vector<int32_t> features;     // (T, m)
    std::vector<size_t> n_used, dims;  // (T): rows and columns without the zeros at the end

    Views(size_t n_views, size_t n_features, size_t n_out, std::vector<int32_t> features,
          const std::vector<float>& matrices);

    const int32_t* features_of(size_t t) const { return features.data() + t * n_features; }
    // (n_used[t], dims[t])
    const float* projection_of(size_t t) const { return projection.data() + offset[t]; }
    void project(size_t t, const float* columns, size_t stride, size_t n_rows, float* out, size_t out_stride) const {
        kernels().project(columns, stride, n_rows, features_of(t), n_used[t], projection_of(t), dims[t], out,
                          out_stride);
    }
    // Writes all n_out dimensions: those that are left out are 0.
    void project_fused(size_t t, const float* columns, size_t stride, size_t n_rows, float* out,
                       size_t out_stride) const {
        kernels().project_fused(columns, stride, n_rows, features_of(t), n_used[t], projection_of(t), dims[t], out,
                                out_stride);
        for (size_t c = dims[t]; c < n_out; ++c) std::fill_n(out + c * out_stride, padded(n_rows, kPack), 0.0f);
    }
    // Rows that are projected at a time: few enough for the cache, whatever n_out is.
    size_t chunk() const { return std::min<size_t>(512, std::max(kPack, 8192 / n_out / kPack * kPack)); }

  private:
    std::vector<float> projection;
    std::vector<size_t> offset;
};

class Branch {
  public:
    virtual ~Branch() = default;
    virtual size_t n_views() const = 0;
    virtual const Views& views() const = 0;
    // Size of the scratch memory of view_scores, in floats.
    virtual size_t scratch() const = 0;
    virtual void view_scores(size_t t, const float* columns, size_t stride, size_t n_rows, float* scratch,
                             float* scores) const = 0;
};

class GlobalBranch : public Branch {
  public:
    // The directions (T, m, D) project scaled features to angles at multiplier 1. Weights (T, M, D) and constants (T)
    // are those of GlobalView. Bandwidths stand from the widest to the narrowest.
    GlobalBranch(Views directions, std::vector<double> multipliers, std::vector<float> cos_weights,
                 std::vector<float> sin_weights, std::vector<float> constants);

    size_t n_views() const override { return directions_.n_views; }
    const Views& views() const override { return directions_; }
    size_t scratch() const override { return directions_.n_out * directions_.chunk(); }
    void view_scores(size_t t, const float* columns, size_t stride, size_t n_rows, float* scratch,
                     float* scores) const override;

    size_t n_bandwidths() const { return factors_.size(); }
    size_t n_random_features() const { return directions_.n_out; }

    // Sums over all rows of the random features phi, (T, M, D), and of phi phi^T, (T, M, D, D). For this, the weights
    // must be those that make phi of cosine and sine.
    void embedding_sums(const Rows& rows, const Run& run, double* phi, double* phi_phi) const;

  private:
    GlobalView view(size_t t) const;

    Views directions_;
    std::vector<float> factors_, cos_weights_, sin_weights_, constants_;
    std::vector<uint8_t> doubled_;
};

// A (P, P), lower triangular, as the kernels read it: kRootRows rows side by side, up to the last column that is not 0.
std::vector<float> pack_root(const float* root, size_t n_features);

class LeverageBranch : public Branch {
  public:
    // The coordinates of each view are (T, d, r); frequencies (T, F, r), phases (T, F), linear (T), mean (T, P), root
    // (T, P, P) are those of LeverageView.
    LeverageBranch(Views views, size_t n_cosines, std::vector<float> linear, std::vector<float> frequencies,
                   std::vector<float> phases, std::vector<float> mean, const std::vector<float>& root);

    size_t n_views() const override { return views_.n_views; }
    const Views& views() const override { return views_; }
    size_t scratch() const override {
        return views_.n_out * views_.chunk() + leverage_scratch(views_.n_out, n_cosines_);
    }
    void view_scores(size_t t, const float* columns, size_t stride, size_t n_rows, float* scratch,
                     float* scores) const override;

    size_t n_features() const { return views_.n_out + n_cosines_; }  // P

    // Sums over the rows with these indices of the features phi, (T, P), and of phi phi^T, (T, P, P).
    void sums(const Rows& rows, const int64_t* indices, size_t count, const Run& run, double* phi,
              double* phi_phi) const;

  private:
    LeverageView view(size_t t) const;

    Views views_;
    size_t n_cosines_;
    std::vector<float> linear_, frequencies_, phases_, mean_;
    std::vector<std::vector<float>> roots_;
};

class LocalBranch : public Branch {
  public:
    LocalBranch(Views views, const float* references, size_t n_references, size_t n_neighbors);

    size_t n_views() const override { return views_.n_views; }
    const Views& views() const override { return views_; }
    size_t scratch() const override { return views_.n_out * views_.chunk() + local_scratch(n_neighbors_); }
    void view_scores(size_t t, const float* columns, size_t stride, size_t n_rows, float* scratch,
                     float* scores) const override;

  private:
    Views views_;
    size_t n_references_, n_neighbors_;  // the references are padded to whole batches
    std::vector<float> references_;      // (T, r, n_references)
};

// The frozen distributions of a branch. Its view scores are ranked, each by its distribution, or standardized; the mean
// over the views is ranked by the branch's distribution. A fit in passes learns the views first: until the branch's
// distribution is known, only the mean can be asked for.
struct BranchRanks {
    std::vector<Cdf<float>> views;    // (T), or none ...
    std::vector<Standard> standards;  // ... and one of these for each view
    Bounds bounds;                    // of standardized scores
    std::optional<Cdf<double>> branch;
    double unit;  // rank_unit

    size_t n_views() const { return views.size() + standards.size(); }
    double mean(double sum) const { return mean_rank(sum, n_views(), standards.empty() ? unit : 1.0); }
    // Adds the ranks or standardized scores of view t to the sums; may overwrite the scores.
    void add(size_t t, float* scores, size_t n, double* sums) const;
};

// How distributions are fitted, see fit_knots and Cdf.
struct CdfRules {
    size_t exact_size;
    std::vector<double> grid;
    double smallest_range;
};

// How view scores are standardized, if they are.
struct StandardRules {
    std::vector<float> smallest;  // (T), of each view's Standard; empty if the scores are ranked
    double smallest_scale;
    Bounds bounds;
};

struct FittedRanks {
    std::unique_ptr<BranchRanks> ranks;
    std::vector<double> scores;  // of the training rows
};

// The rows of each view, whose indices are (T, count), projected by that view: (T, r, count).
void project_rows(const Rows& rows, const Views& views, const int64_t* indices, size_t count, const Run& run,
                  float* projected);

// The covariances of the rows with these indices, projected by each view: (T, r, r).
void projected_covariances(const Rows& rows, const Views& views, const int64_t* indices, size_t count, const Run& run,
                           double* covariances);

// Distances between pairs of n rows in each view: their median and, where that is not above `smallest`, the mean of the
// distances above `smallest` (0 if there is none). The pairs are each of the n rows with the next, then each with the
// second next, and so on; the first row follows the last.
void pair_distances(const Rows& rows, const Views& views, const int64_t* indices, size_t n, size_t n_pairs,
                    double smallest, const Run& run, double* median, double* mean_positive);

// The distributions of the training rows' scores. The view scores of a long table are held for some views at a time, as
// many as fit a budget.
FittedRanks fit_ranks(const Rows& rows, const Branch& branch, const CdfRules& rules,
                      const StandardRules& standard_rules, const Run& run);

// Scores of all rows in all views, (T, n).
void view_scores(const Rows& rows, const Branch& branch, const Run& run, float* scores);

struct RankedBranch {
    const Branch* branch;
    const BranchRanks* ranks;
    double* scores;  // (n), written
    bool ranked;     // by the branch's distribution; else the scores are the means over the views
};

// Branch scores of all rows, block by block through all views of all branches.
void score(const Rows& rows, const std::vector<RankedBranch>& branches, const Run& run);

}  // namespace rgld
