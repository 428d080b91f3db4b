// Runs everything that the core does on several threads, for the thread sanitizer: `make check-threads`. Also checks
// that the number of threads does not change a bit of the results. Python is not part of it, because an interpreter
// that is not instrumented hides or invents races.
#include <cstdio>
#include <cstring>
#include <random>
#include <thread>

#include "branches.h"
#include "columns.h"
#include "table.h"

namespace {

using namespace rgld;

constexpr size_t kRows = 3'001, kColumns = 5, kViews = 6, kFeatures = 3, kDims = 2;
constexpr size_t kRandomFeatures = 10, kReferences = 60, kNeighbors = 5;

// All results of the core, one after the other.
using Results = std::vector<double>;

struct Inputs {
    std::vector<double> table;
    Scaling scaling;
    GlobalBranch global;
    LeverageBranch leverage;
    LocalBranch local;
    std::vector<int64_t> indices;  // (kViews, kReferences)

    Matrix matrix() const { return {table.data(), true, kRows, kColumns, ptrdiff_t(kColumns), 1}; }
};

template <class T>
std::vector<T> normal_values(std::mt19937_64& random, size_t n, double spread = 1.0) {
    std::normal_distribution<double> normal(0.0, spread);
    std::vector<T> values(n);
    for (T& value : values) value = T(normal(random));
    return values;
}

Views draw_views(std::mt19937_64& random, size_t n_columns, size_t n_out) {
    std::vector<int32_t> features(kViews * kFeatures);
    for (int32_t& feature : features) feature = int32_t(random() % n_columns);
    return Views(kViews, kFeatures, n_out, std::move(features),
                 normal_values<float>(random, kViews * kFeatures * n_out));
}

// A table and a model with all kinds of scalings; its numbers are random, which is good enough for races.
Inputs draw_inputs() {
    std::mt19937_64 random(0);
    const size_t n_scaled = 3 * kColumns, n_weights = kViews * 2 * kRandomFeatures;
    Scaling scaling{kColumns,
                    {Scaling::Kind::kLinear, Scaling::Kind::kArcsinh, Scaling::Kind::kQuantile},
                    std::vector<double>(n_scaled, 0.1),
                    std::vector<double>(n_scaled, 2.0),
                    std::vector<double>(n_scaled, 0.0),
                    std::vector<double>(n_scaled, 1.0),
                    {},
                    1e9};
    std::vector<double> quantiles;
    for (size_t c = 0; c < kColumns; ++c) quantiles.insert(quantiles.end(), {-2.0, -0.5, 0.0, 0.0, 0.7, 2.0});
    scaling.curves = quantile_curves(quantiles.data(), kColumns, quantiles.size() / kColumns);
    const auto weights = [&] { return normal_values<float>(random, n_weights); };
    GlobalBranch global(draw_views(random, n_scaled, kRandomFeatures), {1.0, 0.5}, weights(), weights(),
                        normal_values<float>(random, kViews));
    const size_t n_features = kDims + kRandomFeatures;
    std::vector<float> root(kViews * n_features * n_features);
    for (size_t t = 0; t < kViews; ++t)
        for (size_t i = 0; i < n_features; ++i)
            for (size_t j = 0; j <= i; ++j) root[(t * n_features + i) * n_features + j] = i == j ? 1.0f : 0.1f;
    LeverageBranch leverage(draw_views(random, n_scaled, kDims), kRandomFeatures, normal_values<float>(random, kViews),
                            normal_values<float>(random, kViews * kRandomFeatures * kDims),
                            normal_values<float>(random, kViews * kRandomFeatures),
                            normal_values<float>(random, kViews * n_features), root);
    const auto references = normal_values<float>(random, kViews * kDims * kReferences);
    LocalBranch local(draw_views(random, n_scaled, kDims), references.data(), kReferences, kNeighbors);
    std::vector<int64_t> indices(kViews * kReferences);
    for (int64_t& index : indices) index = int64_t(random() % kRows);
    return {normal_values<double>(random, kRows * kColumns),
            std::move(scaling),
            std::move(global),
            std::move(leverage),
            std::move(local),
            std::move(indices)};
}

template <class Values>
void append(Results& results, const Values& values) {
    results.insert(results.end(), values.begin(), values.end());
}

Results everything(const Inputs& inputs, bool keep, int n_threads) {
    const Run run{n_threads, [] { return false; }};
    Results results;
    ColumnStatistics columns(kColumns, 11);
    ColumnKnots knots(kColumns, {0, 1});
    columns.learn(inputs.matrix(), 1e300, knots, run);
    append(results, columns.statistics);
    append(results, columns.quantiles);
    append(results, knots.values);
    append(results, knots.counts);

    Rows rows(inputs.matrix(), inputs.scaling, rows_per_block(kRows, inputs.scaling.n_columns()));
    if (keep) rows.keep_scaled(run);
    std::vector<double> mean(rows.n_columns()), std(rows.n_columns());
    rows.moments(run, mean.data(), std.data());
    append(results, mean);
    append(results, std);

    std::mt19937_64 random(1);
    const Views views = draw_views(random, rows.n_columns(), kDims);
    std::vector<float> projected(kViews * kDims * kReferences);
    project_rows(rows, views, inputs.indices.data(), kReferences, run, projected.data());
    append(results, projected);
    std::vector<double> median(kViews), mean_positive(kViews);
    pair_distances(rows, views, inputs.indices.data(), kReferences, 300, 1e-9, run, median.data(),
                   mean_positive.data());
    append(results, median);

    const size_t n_sums = kViews * 2 * kRandomFeatures;
    std::vector<double> phi(n_sums), phi_phi(n_sums * kRandomFeatures);
    inputs.global.embedding_sums(rows, run, phi.data(), phi_phi.data());
    append(results, phi);
    append(results, phi_phi);

    const size_t n_features = inputs.leverage.n_features();
    std::vector<double> leverage_phi(kViews * n_features), leverage_phi_phi(kViews * n_features * n_features);
    inputs.leverage.sums(rows, inputs.indices.data(), inputs.indices.size(), run, leverage_phi.data(),
                         leverage_phi_phi.data());
    append(results, leverage_phi);
    append(results, leverage_phi_phi);

    // Both ways of ranking: of few rows every score is a knot, of many only those beside a grid.
    const std::vector<double> grid = {0.0, 0.25, 0.5, 0.75, 0.9, 1.0};
    const StandardRules by_rank{{}, 1e-3, {-4.0f, 8.0f}},
        by_standard{std::vector<float>(kViews, 1e-6f), 1e-3, {-4.0f, 8.0f}};
    for (const Branch* branch : std::initializer_list<const Branch*>{&inputs.global, &inputs.leverage, &inputs.local}) {
        std::vector<float> scores(kViews * kRows);
        view_scores(rows, *branch, run, scores.data());
        append(results, scores);
        for (const size_t exact_size : {size_t(8192), size_t(100)}) {
            for (const StandardRules* rules : {&by_rank, &by_standard}) {
                const FittedRanks fitted = fit_ranks(rows, *branch, {exact_size, grid, 1e-100}, *rules, run);
                append(results, fitted.scores);
                std::vector<double> ranked(kRows), means(kRows);
                score(rows,
                      {{branch, fitted.ranks.get(), ranked.data(), true},
                       {branch, fitted.ranks.get(), means.data(), false}},
                      run);
                append(results, ranked);
                append(results, means);
            }
        }
    }
    return results;
}

bool same_bits(const Results& a, const Results& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

// A failing task must end the others, and a request to stop must be heard, without a race.
bool stops(int n_threads) {
    int n_stopped = 0;
    try {
        run_tasks({n_threads, {}}, 1000, [](size_t task, size_t) {
            if (task == 17) throw std::invalid_argument("task 17 fails");
        });
    } catch (const std::invalid_argument&) {
        ++n_stopped;
    }
    try {
        run_tasks({n_threads, [] { return true; }}, 1'000'000,
                  [](size_t, size_t) { std::this_thread::sleep_for(std::chrono::milliseconds(1)); });
    } catch (const Interrupted&) {
        ++n_stopped;
    }
    return n_stopped == 2;
}

// The same with threads that end with each call and with a team of fewer or more threads, some of which fell asleep.
bool holds(const Inputs& inputs, const Results& expected, int n_threads) {
    for (const bool keep : {false, true}) {
        if (!same_bits(everything(inputs, keep, n_threads), expected)) {
            std::printf("%d threads change the results\n", n_threads);
            return false;
        }
    }
    if (!stops(n_threads)) {
        std::printf("%d threads do not stop\n", n_threads);
        return false;
    }
    return true;
}

}  // namespace

int main() {
    const Inputs inputs = draw_inputs();
    const Results expected = everything(inputs, false, 1);
    for (const int n_threads : {2, 3, 8}) {
        if (!holds(inputs, expected, n_threads)) return 1;
        for (const size_t size : {size_t(2), size_t(5)}) {
            Team team(size);
            Team::current() = &team;
            const bool held = holds(inputs, expected, n_threads);
            std::this_thread::sleep_for(2 * kLookFor);
            const bool held_after_sleep = same_bits(everything(inputs, true, n_threads), expected);
            // All threads are lent, and come back in the middle of the work.
            for (size_t i = 0; i < size; ++i) team.lend();
            std::thread other([&] {
                std::this_thread::sleep_for(kLookFor);
                for (size_t i = 0; i < size; ++i) team.take_back();
            });
            const bool held_while_lent = holds(inputs, expected, n_threads);
            other.join();
            Team::current() = nullptr;
            if (!held || !held_after_sleep || !held_while_lent) return 1;
        }
    }
    // Several callers with one model, as when a detector scores on several threads of Python.
    std::vector<Results> found(3);
    std::vector<std::thread> callers;
    for (Results& results : found) callers.emplace_back([&] { results = everything(inputs, true, 2); });
    for (std::thread& caller : callers) caller.join();
    for (const Results& results : found) {
        if (!same_bits(results, expected)) {
            std::printf("callers at the same time change each other's results\n");
            return 1;
        }
    }
    std::printf("%zu results, the same on 1, 2, 3 and 8 threads and for callers at the same time\n", expected.size());
    return 0;
}
