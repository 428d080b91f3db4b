// The core as a Python module: takes and returns arrays, releases the GIL, and stops on Ctrl-C. No other file knows
// Python.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <memory>
#include <thread>
#include <type_traits>

#include "branches.h"
#include "columns.h"
#include "draws.h"
#include "kernels.h"
#include "table.h"
#include "values.h"

namespace nb = nanobind;
using namespace rgld;

namespace {

using AnyMatrix = nb::ndarray<nb::ro, nb::ndim<2>, nb::device::cpu>;
template <class T, size_t N>
using In = nb::ndarray<const T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out = nb::ndarray<nb::numpy, T>;

// A copy that no other thread can change. What is checked must be copied first.
template <class Array>
auto copied(const Array& array) {
    using T = std::remove_const_t<typename Array::Scalar>;
    return std::vector<T>(array.data(), array.data() + array.size());
}

void require(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(what);
}

std::vector<double> values_at(std::vector<double>& values, const std::vector<size_t>& places) {
    std::vector<double> found;
    for (const size_t place : places) {
        require(place < values.size(), "no such place");
        found.push_back(value_at(values, place));
    }
    return found;
}

template <class T>
Out<T> array_of(std::vector<T>&& values, std::initializer_list<size_t> shape) {
    auto* owner = new std::vector<T>(std::move(values));
    nb::capsule free(owner, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return Out<T>(owner->data(), shape, free);
}

template <class T>
Out<T> array_of(std::vector<T>&& values) {
    const size_t size = values.size();
    return array_of(std::move(values), {size});
}

Matrix matrix_of(const AnyMatrix& X) {
    const bool is_double = X.dtype() == nb::dtype<double>();
    require(is_double || X.dtype() == nb::dtype<float>(), "expected a float32 or float64 matrix");
    require(X.shape(1) > 0, "expected a matrix with columns");
    require(X.shape(0) > 0, "the matrix has no rows");
    return {X.data(), is_double, X.shape(0), X.shape(1), ptrdiff_t(X.stride(0)), ptrdiff_t(X.stride(1))};
}

std::vector<size_t> places_of(const Matrix& X, const In<int64_t, 1>& given) {
    std::vector<size_t> places;
    for (const int64_t place : copied(given)) {
        require(place >= 0 && size_t(place) < X.n_rows && (places.empty() || size_t(place) > places.back()),
                "places must be rows, and increase");
        places.push_back(size_t(place));
    }
    return places;
}

nb::tuple arrays_of(ColumnKnots&& knots, size_t n_columns) {
    const size_t n = knots.places.size();
    return nb::make_tuple(array_of(std::move(knots.values), {n_columns, n}),
                          array_of(std::move(knots.counts), {n_columns, n}));
}

// Calls `acquire`, which takes the GIL. When Python exits, it ends a daemon thread that asks for the GIL by unwinding
// its stack. The core could have threads running, and unwinding over them would abort the process: wait for its end
// instead.
template <class Acquire>
auto acquire_gil(Acquire&& acquire) {
    try {
        return acquire();
    } catch (...) {
        for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
    }
}

bool is_interrupted() {
    const PyGILState_STATE state = acquire_gil(PyGILState_Ensure);
    const bool interrupted = PyErr_CheckSignals() != 0;
    PyGILState_Release(state);
    return interrupted;
}

// Runs work on n_threads without holding the GIL, until it is done or a signal handler raises an exception.
template <class Work>
void run_freely(int n_threads, Work&& work) {
    std::exception_ptr failure;
    PyThreadState* thread = PyEval_SaveThread();
    try {
        work(Run{n_threads, is_interrupted});
    } catch (...) {
        failure = std::current_exception();
    }
    acquire_gil([thread] { PyEval_RestoreThread(thread); });
    try {
        if (failure) std::rethrow_exception(failure);
    } catch (const Interrupted&) {
        nb::raise_python_error();
    }
}

// A context in which the calls of one thread share a team. The team itself lives as long as this object: work that
// borrowed a core may give it back after the context has ended.
class PyTeam {
  public:
    explicit PyTeam(size_t n_threads) : n_threads_(n_threads) {}
    ~PyTeam() { forget_copy(); }

    void enter() {
        require(!team_, "a team is entered once");
        team_ = std::make_unique<Team>(n_threads_);
        before_ = Team::current();
        Team::current() = team_.get();
    }

    void exit() {
        Team::current() = before_;
        if (!forget_copy()) team_->end();  // the threads are idle, and end without the GIL
    }

    void lend() {
        lender_ = current_core();
        team_->lend();
    }
    void borrow() const { leave_core(lender_); }
    void take_back() { team_->take_back(); }

  private:
    bool forget_copy() {
        const bool is_copy = team_ && team_->is_copy();
        if (is_copy) (void)team_.release();
        return is_copy;
    }

    size_t n_threads_;
    std::unique_ptr<Team> team_;
    Team* before_ = nullptr;
    int lender_ = -1;
};

// A table with its scaling; keeps the Python objects that own the memory alive.
struct PyRows {
    AnyMatrix X;
    nb::object scaling_owner;
    Rows rows;

    // Scales all rows now with `keep`: all columns, or only the features that some views look at.
    PyRows(AnyMatrix matrix, nb::object owner, const Scaling& scaling, bool keep,
           const std::optional<In<int32_t, 2>>& features, int n_threads)
        : X(matrix),
          scaling_owner(owner),
          rows(matrix_of(matrix), scaling, rows_per_block(matrix.shape(0), scaling.n_columns())) {
        require(matrix.shape(1) == scaling.n_inputs, "the matrix has other columns than the scaling");
        Used used;
        if (features) {
            used.resize(scaling.n_columns());
            for (const int32_t feature : copied(*features)) {
                require(feature >= 0 && size_t(feature) < used.size(), "a feature is not a column");
                used[size_t(feature)] = 1;
            }
        }
        if (keep) run_freely(n_threads, [&](const Run& run) { rows.keep_scaled(run, std::move(used)); });
    }
};

template <class Array>
std::vector<int64_t> row_indices(const PyRows& table, const Array& given) {
    std::vector<int64_t> indices = copied(given);
    for (const int64_t index : indices)
        require(index >= 0 && size_t(index) < table.rows.n_rows(), "a row is not in the table");
    return indices;
}

Views views_of(const In<int32_t, 2>& features, const In<float, 3>& projection, size_t n_columns) {
    require(features.shape(0) == projection.shape(0) && features.shape(1) == projection.shape(1),
            "features and projection have different shapes");
    require(projection.size() > 0, "a view has features and dimensions");
    std::vector<int32_t> columns = copied(features);
    for (const int32_t column : columns)
        require(column >= 0 && size_t(column) < n_columns, "a feature is not a column");
    return Views(features.shape(0), features.shape(1), projection.shape(2), std::move(columns), copied(projection));
}

struct PyBranch {
    std::unique_ptr<Branch> branch;
    size_t n_columns;

    const Branch& for_rows(const PyRows& table) const {
        require(table.rows.n_columns() == n_columns, "the matrix has other columns than the branch");
        return *branch;
    }
};

using PyKnots = std::pair<In<double, 1>, In<double, 1>>;

template <class T>
Cdf<T> cdf_of(const PyKnots& given, double n_rows, double smallest_range) {
    using Level = decltype(Knot<T>::level);
    const auto& [values, ranks] = given;
    require(values.size() > 0 && values.size() <= kMaxKnots && values.size() == ranks.size(),
            "a distribution has as many values as ranks");
    const double unit = rank_unit(n_rows);
    std::vector<Knot<T>> knots(values.size());
    // Levels are whole numbers: rounding restores those that the ranks were made of, to the bit. It must not make 0 or
    // 1 of a rank.
    for (size_t j = 0; j < knots.size(); ++j)
        knots[j] = {T(values.data()[j]), Level(clipped(std::rint(ranks.data()[j] * unit), 1.0, unit - 1.0))};
    return Cdf<T>(std::move(knots), n_rows, smallest_range);
}

template <class T>
nb::tuple knots_of(const Cdf<T>& cdf, double unit) {
    std::vector<double> values(cdf.n_knots()), ranks(cdf.n_knots());
    for (size_t j = 0; j < cdf.n_knots(); ++j) {
        values[j] = double(cdf.knot(j).value);
        ranks[j] = double(cdf.knot(j).level) / unit;
    }
    return nb::make_tuple(array_of(std::move(values)), array_of(std::move(ranks)));
}

const Cdf<double>& branch_of(const BranchRanks& ranks) {
    require(ranks.branch.has_value(), "the distribution of the branch is not known yet");
    return *ranks.branch;
}

// Counts of where the scores of each view, (T, n), lie among its knots, (T, J), which increase and are padded with
// infinities. The shape of the counts is (T, 2J + 1), see Cdf::count.
template <class T>
Out<int64_t> counted(In<T, 2> scores, In<double, 2> knots, int n_threads) {
    const size_t n_views = scores.shape(0), n = scores.shape(1), max_knots = knots.shape(1), size = 2 * max_knots + 1;
    require(knots.shape(0) == n_views && max_knots > 0 && max_knots <= kMaxKnots, "each view has its knots");
    std::vector<int64_t> counts(n_views * size);
    run_freely(n_threads, [&](const Run& run) {
        run_tasks(run, n_views, [&](size_t t, size_t) {
            std::vector<Knot<T>> own;
            for (size_t j = 0; j < max_knots; ++j) {
                const double value = read_once(knots.data() + t * max_knots + j);
                if (!std::isfinite(value)) break;
                own.push_back({T(value), 0});
            }
            require(!own.empty(), "each view has a knot");
            Cdf<T>(std::move(own), 1.0, 1.0).count(scores.data() + t * n, n, counts.data() + t * size);
        });
    });
    return array_of(std::move(counts), {n_views, size});
}

}  // namespace

NB_MODULE(_core, m) {
    m.doc() = "The compiled core: see core/.";
    // An RGLD_CPU that this processor does not have ends the import, not the first call.
    kernels();
    // A daemon thread may hold arrays and models when Python exits: nothing to tell the user.
    nb::set_leak_warnings(false);
    m.def("instruction_set", [] { return std::string(kernels().name); });

    // Fused multiply-adds per second of one thread. Each lane of a vector counts.
    m.def("fused_rate", [](size_t n_rounds) {
        std::chrono::duration<double> elapsed{};
        run_freely(1, [&](const Run&) {
            const auto start = std::chrono::steady_clock::now();
            volatile float result = kernels().busy(n_rounds);
            (void)result;
            elapsed = std::chrono::steady_clock::now() - start;
        });
        return double(n_rounds * kBusyRound) / elapsed.count();
    });

    nb::class_<PyTeam>(m, "Team")
        .def(nb::init<size_t>())
        .def(
            "__enter__",
            [](PyTeam& self) -> PyTeam& {
                self.enter();
                return self;
            },
            nb::rv_policy::reference)
        .def("lend", &PyTeam::lend)
        .def("borrow", &PyTeam::borrow)
        .def("take_back", &PyTeam::take_back)
        .def("__exit__", [](PyTeam& self, const nb::args&) { self.exit(); });

    m.def("column_statistics",
          [](AnyMatrix X, size_t n_quantiles, double largest, In<int64_t, 1> places, int n_threads) {
              const Matrix matrix = matrix_of(X);
              ColumnStatistics statistics(matrix.n_columns, n_quantiles);
              ColumnKnots knots(matrix.n_columns, places_of(matrix, places));
              run_freely(n_threads, [&](const Run& run) { statistics.learn(matrix, largest, knots, run); });
              return nb::make_tuple(array_of(std::move(statistics.statistics), {matrix.n_columns, kStatistics}),
                                    array_of(std::move(statistics.quantiles), {matrix.n_columns, n_quantiles}),
                                    arrays_of(std::move(knots), matrix.n_columns));
          });

    m.def("column_knots", [](AnyMatrix X, In<int64_t, 1> places, int n_threads) {
        const Matrix matrix = matrix_of(X);
        ColumnKnots knots(matrix.n_columns, places_of(matrix, places));
        run_freely(n_threads, [&](const Run& run) { knots.learn(matrix, run); });
        return arrays_of(std::move(knots), matrix.n_columns);
    });

    nb::class_<Scaling>(m, "Scaling")
        .def("__init__",
             [](Scaling* self, const std::vector<std::string>& kinds, In<double, 1> center, In<double, 1> scale,
                In<double, 1> shift, In<double, 1> unit, In<double, 2> quantiles, double largest_value) {
                 require(!kinds.empty() && center.size() > 0 && center.size() % kinds.size() == 0,
                         "a scaling has a kind and columns");
                 const size_t n = center.size(), d = n / kinds.size();
                 require(scale.size() == n && shift.size() == n && unit.size() == n,
                         "the arrays of a scaling have different lengths");
                 Scaling scaling{d, {}, copied(center), copied(scale), copied(shift), copied(unit), {}, largest_value};
                 for (const std::string& kind : kinds) {
                     const bool by_quantiles = kind == "quantile";
                     require(!by_quantiles ||
                                 (quantiles.shape(0) == d && quantiles.shape(1) > 0 && quantiles.shape(1) <= kMaxKnots),
                             "the arrays of a scaling have different lengths");
                     scaling.kinds.push_back(by_quantiles        ? Scaling::Kind::kQuantile
                                             : kind == "arcsinh" ? Scaling::Kind::kArcsinh
                                                                 : Scaling::Kind::kLinear);
                 }
                 if (quantiles.shape(1) > 0) scaling.curves = quantile_curves(quantiles.data(), d, quantiles.shape(1));
                 new (self) Scaling(std::move(scaling));
             });

    nb::class_<PyRows>(m, "Rows")
        .def("__init__",
             [](PyRows* self, AnyMatrix X, nb::object scaling, bool keep, std::optional<In<int32_t, 2>> features,
                int n_threads) {
                 new (self) PyRows(X, scaling, nb::cast<const Scaling&>(scaling), keep, features, n_threads);
             })
        .def_prop_ro("n_columns", [](const PyRows& self) { return self.rows.n_columns(); })
        .def("moments",
             [](const PyRows& self, std::optional<In<bool, 1>> columns, int n_threads) {
                 std::vector<double> mean(self.rows.n_columns()), std(self.rows.n_columns());
                 Used used;
                 if (columns) {
                     require(columns->size() == mean.size(), "each column is asked for or not");
                     used.assign(columns->data(), columns->data() + mean.size());
                 }
                 run_freely(n_threads, [&](const Run& run) { self.rows.moments(run, mean.data(), std.data(), used); });
                 return nb::make_tuple(array_of(std::move(mean)), array_of(std::move(std)));
             })
        .def("take", [](const PyRows& self, In<int64_t, 1> given) {
            const std::vector<int64_t> indices = row_indices(self, given);
            const size_t n = indices.size(), d = self.rows.n_columns();
            std::vector<int32_t> all(d);
            for (size_t c = 0; c < d; ++c) all[c] = int32_t(c);
            std::vector<float> columns(d * n);
            self.rows.take(indices.data(), n, all.data(), d, columns.data(), n);
            return array_of(std::move(columns), {d, n});
        });

    m.def("project_rows", [](const PyRows& table, In<int32_t, 2> features, In<float, 3> projection,
                             In<int64_t, 2> given, int n_threads) {
        const Views views = views_of(features, projection, table.rows.n_columns());
        require(given.shape(0) == views.n_views, "each view has its rows");
        const std::vector<int64_t> indices = row_indices(table, given);
        const size_t n = given.shape(1);
        std::vector<float> projected(views.n_views * views.n_out * n);
        run_freely(n_threads,
                   [&](const Run& run) { project_rows(table.rows, views, indices.data(), n, run, projected.data()); });
        return array_of(std::move(projected), {views.n_views, views.n_out, n});
    });

    m.def("projected_covariances", [](const PyRows& table, In<int32_t, 2> features, In<float, 3> projection,
                                      In<int64_t, 1> given, int n_threads) {
        const Views views = views_of(features, projection, table.rows.n_columns());
        const std::vector<int64_t> indices = row_indices(table, given);
        require(!indices.empty(), "a covariance is of rows");
        const size_t n = indices.size(), r = views.n_out;
        std::vector<double> covariances(views.n_views * r * r);
        run_freely(n_threads, [&](const Run& run) {
            projected_covariances(table.rows, views, indices.data(), n, run, covariances.data());
        });
        return array_of(std::move(covariances), {views.n_views, r, r});
    });

    m.def("pair_distances", [](const PyRows& table, In<int32_t, 2> features, In<float, 3> projection,
                               In<int64_t, 1> given, size_t n_pairs, double smallest, int n_threads) {
        const std::vector<int64_t> indices = row_indices(table, given);
        require(n_pairs > 0 && indices.size() > 1 && (n_pairs - 1) / indices.size() + 1 < indices.size(),
                "more pairs than the rows have");
        const Views views = views_of(features, projection, table.rows.n_columns());
        std::vector<double> median(views.n_views), mean_positive(views.n_views);
        run_freely(n_threads, [&](const Run& run) {
            pair_distances(table.rows, views, indices.data(), indices.size(), n_pairs, smallest, run, median.data(),
                           mean_positive.data());
        });
        return nb::make_tuple(array_of(std::move(median)), array_of(std::move(mean_positive)));
    });

    nb::class_<PyBranch>(m, "Branch")
        .def_static(
            "of_global",
            [](size_t n_columns, In<int32_t, 2> features, In<float, 3> directions, In<double, 1> multipliers,
               In<float, 3> cos_weights, In<float, 3> sin_weights, In<float, 1> constants) {
                Views views = views_of(features, directions, n_columns);
                const size_t size = views.n_views * multipliers.size() * views.n_out;
                require(cos_weights.size() == size && sin_weights.size() == size && constants.size() == views.n_views,
                        "the arrays of a branch have different shapes");
                return PyBranch{
                    std::make_unique<GlobalBranch>(std::move(views), copied(multipliers), copied(cos_weights),
                                                   copied(sin_weights), copied(constants)),
                    n_columns};
            })
        .def_static("of_leverage",
                    [](size_t n_columns, In<int32_t, 2> features, In<float, 3> projection, In<float, 1> linear,
                       In<float, 3> frequencies, In<float, 2> phases, In<float, 2> mean, In<float, 3> root) {
                        Views views = views_of(features, projection, n_columns);
                        const size_t T = views.n_views, r = views.n_out, F = phases.shape(1), P = r + F;
                        require(linear.size() == T && phases.shape(0) == T && frequencies.shape(0) == T &&
                                    frequencies.shape(1) == F && frequencies.shape(2) == r && mean.shape(0) == T &&
                                    mean.shape(1) == P && root.shape(0) == T && root.shape(1) == P &&
                                    root.shape(2) == P,
                                "the arrays of a branch have different shapes");
                        return PyBranch{
                            std::make_unique<LeverageBranch>(std::move(views), F, copied(linear), copied(frequencies),
                                                             copied(phases), copied(mean), copied(root)),
                            n_columns};
                    })
        .def_static("of_local",
                    [](size_t n_columns, In<int32_t, 2> features, In<float, 3> projection, In<float, 3> references,
                       size_t n_neighbors) {
                        Views views = views_of(features, projection, n_columns);
                        require(references.shape(0) == views.n_views && references.shape(1) == views.n_out,
                                "references and projection have different shapes");
                        require(n_neighbors >= 1 && n_neighbors < references.shape(2), "too many neighbours");
                        return PyBranch{std::make_unique<LocalBranch>(std::move(views), references.data(),
                                                                      references.shape(2), n_neighbors),
                                        n_columns};
                    })
        .def("embedding_sums",
             [](const PyBranch& self, const PyRows& table, int n_threads) {
                 const auto& branch = dynamic_cast<const GlobalBranch&>(self.for_rows(table));
                 const size_t T = branch.n_views(), M = branch.n_bandwidths(), D = branch.n_random_features();
                 std::vector<double> phi(T * M * D), phi_phi(T * M * D * D);
                 run_freely(n_threads, [&](const Run& run) {
                     branch.embedding_sums(table.rows, run, phi.data(), phi_phi.data());
                 });
                 return nb::make_tuple(array_of(std::move(phi), {T, M, D}), array_of(std::move(phi_phi), {T, M, D, D}));
             })
        .def("leverage_sums",
             [](const PyBranch& self, const PyRows& table, In<int64_t, 1> given, int n_threads) {
                 const auto& branch = dynamic_cast<const LeverageBranch&>(self.for_rows(table));
                 const std::vector<int64_t> indices = row_indices(table, given);
                 const size_t T = branch.n_views(), P = branch.n_features();
                 std::vector<double> phi(T * P), phi_phi(T * P * P);
                 run_freely(n_threads, [&](const Run& run) {
                     branch.sums(table.rows, indices.data(), indices.size(), run, phi.data(), phi_phi.data());
                 });
                 return nb::make_tuple(array_of(std::move(phi), {T, P}), array_of(std::move(phi_phi), {T, P, P}));
             })
        .def("view_scores",
             [](const PyBranch& self, const PyRows& table, int n_threads) {
                 const Branch& branch = self.for_rows(table);
                 const size_t T = branch.n_views(), n = table.rows.n_rows();
                 std::vector<float> scores(T * n);
                 run_freely(n_threads, [&](const Run& run) { view_scores(table.rows, branch, run, scores.data()); });
                 return array_of(std::move(scores), {T, n});
             })
        .def("fit_ranks", [](const PyBranch& self, const PyRows& table, size_t exact_size, In<double, 1> grid,
                             double smallest_range, In<float, 1> smallest, double smallest_scale,
                             std::pair<float, float> bounds, int n_threads) {
            const Branch& branch = self.for_rows(table);
            require(exact_size <= kMaxKnots && 2 * grid.size() <= kMaxKnots, "too many knots");
            require(table.rows.n_rows() <= exact_size || grid.size() > 0, "many rows need a grid of ranks");
            require(smallest.size() == 0 || smallest.size() == branch.n_views(), "a view has a smallest score");
            const CdfRules rules{exact_size, copied(grid), smallest_range};
            const StandardRules standard_rules{copied(smallest), smallest_scale, {bounds.first, bounds.second}};
            FittedRanks fitted;
            run_freely(n_threads,
                       [&](const Run& run) { fitted = fit_ranks(table.rows, branch, rules, standard_rules, run); });
            return nb::make_tuple(nb::cast(std::move(*fitted.ranks)), array_of(std::move(fitted.scores)));
        });

    nb::class_<BranchRanks>(m, "Ranks")
        // Takes the knots of the views' distributions or their standards, (T, 3), and the knots of the branch's
        // distribution if it is known.
        .def("__init__",
             [](BranchRanks* self, std::vector<PyKnots> view_knots, In<float, 2> standards,
                std::optional<PyKnots> branch_knots, std::pair<float, float> bounds, double n_rows,
                double smallest_range) {
                 require(standards.shape(1) == 3 && (standards.shape(0) == 0) != view_knots.empty(),
                         "view scores are either ranked or standardized");
                 std::vector<Cdf<float>> views;
                 for (const PyKnots& knots : view_knots) views.push_back(cdf_of<float>(knots, n_rows, smallest_range));
                 std::optional<Cdf<double>> branch;
                 if (branch_knots) branch = cdf_of<double>(*branch_knots, n_rows, smallest_range);
                 std::vector<Standard> given(standards.shape(0));
                 for (size_t t = 0; t < given.size(); ++t)
                     given[t] = {standards.data()[3 * t], standards.data()[3 * t + 1], standards.data()[3 * t + 2]};
                 new (self) BranchRanks{std::move(views),
                                        std::move(given),
                                        {bounds.first, bounds.second},
                                        std::move(branch),
                                        rank_unit(n_rows)};
             })
        .def("standards",
             [](const BranchRanks& self) {
                 std::vector<float> found;
                 for (const Standard& s : self.standards) found.insert(found.end(), {s.smallest, s.center, s.scale});
                 const size_t n = self.standards.size();
                 return array_of(std::move(found), {n, 3});
             })
        // Values and ranks of the knots, for each view that is ranked.
        .def("view_knots",
             [](const BranchRanks& self) {
                 nb::list found;
                 for (const Cdf<float>& view : self.views) found.append(knots_of(view, self.unit));
                 return found;
             })
        // The same for the branch, whose distribution must be known.
        .def("branch_knots", [](const BranchRanks& self) { return knots_of(branch_of(self), self.unit); })
        // The rank of each score in one view's distribution, or in the branch's (view = number of views).
        .def("normalized_rank", [](const BranchRanks& self, size_t view, In<double, 1> scores) {
            require(view <= self.views.size(), "no such view");
            std::vector<double> ranks(scores.size());
            if (view < self.views.size()) {
                const std::vector<float> narrow(scores.data(), scores.data() + scores.size());
                self.views[view].add_ranks(narrow.data(), narrow.size(), ranks.data());
            } else {
                branch_of(self).add_ranks(scores.data(), scores.size(), ranks.data());
            }
            for (double& rank : ranks) rank /= self.unit;
            return array_of(std::move(ranks));
        });

    m.def("count_pairs", [](In<uint8_t, 2> given, const std::vector<size_t>& sizes, int n_threads) {
        require(given.shape(0) == sizes.size(), "a column has a number of values");
        const size_t n_rows = given.shape(1);
        require(n_rows <= size_t(INT32_MAX), "too many rows");
        const std::vector<uint8_t> codes = copied(given);
        size_t width = 0;
        for (size_t c = 0; c < sizes.size(); ++c) {
            require(sizes[c] > 0 && sizes[c] <= 256, "a column has 1 to 256 values");
            const uint8_t* own = codes.data() + c * n_rows;
            require(n_rows == 0 || *std::max_element(own, own + n_rows) < sizes[c], "a code is not a value");
            width += sizes[c];
        }
        std::vector<int32_t> counts(width * width);
        run_freely(n_threads, [&](const Run& run) { count_pairs(codes.data(), n_rows, sizes, run, counts.data()); });
        return array_of(std::move(counts), {width, width});
    });
    // The next five keep the GIL: they take some microseconds.
    m.def("draw_without_replacement", [](nb::capsule given, size_t n, size_t size, size_t count) {
        const auto* generator = static_cast<const BitGenerator*>(PyCapsule_GetPointer(given.ptr(), "BitGenerator"));
        if (!generator) throw nb::python_error();
        require(size <= n && n < UINT32_MAX && count < UINT32_MAX, "a draw takes at most all numbers");
        std::vector<int64_t> drawn(count * size);
        draw_without_replacement(*generator, n, size, count, drawn.data());
        return array_of(std::move(drawn), {count, size});
    });
    m.def("inverse_triangles", [](In<double, 3> given) {
        const size_t n_matrices = given.shape(0), n = given.shape(1);
        require(given.shape(2) == n, "a triangle is square");
        const std::vector<double> triangles = copied(given);
        std::vector<double> inverses(triangles.size());
        for (size_t t = 0; t < n_matrices; ++t)
            invert_triangle(triangles.data() + t * n * n, n, inverses.data() + t * n * n);
        return array_of(std::move(inverses), {n_matrices, n, n});
    });
    m.def("find_partners", [](In<double, 2> given, In<int64_t, 1> targets, In<int64_t, 1> given_columns,
                              size_t max_partners, double min_gain) {
        const size_t n = given.shape(0), n_targets = targets.size();
        require(given.shape(1) == n && given_columns.size() == n, "a covariance is square, and a feature has a column");
        const std::vector<double> covariance = copied(given);
        const std::vector<int64_t> columns = copied(given_columns), chosen = copied(targets);
        std::vector<int64_t> partners(n_targets * max_partners);
        std::vector<double> left_open(n_targets);
        for (size_t t = 0; t < n_targets; ++t) {
            require(chosen[t] >= 0 && size_t(chosen[t]) < n, "a target is a feature");
            left_open[t] = find_partners(covariance.data(), n, size_t(chosen[t]), columns.data(),
                                         {max_partners, min_gain}, partners.data() + t * max_partners);
        }
        return nb::make_tuple(array_of(std::move(partners), {n_targets, max_partners}), array_of(std::move(left_open)));
    });
    m.def("values_at", [](In<double, 1> given, const std::vector<size_t>& places) {
        std::vector<double> values = copied(given);
        return values_at(values, places);
    });
    m.def("distances_at", [](In<double, 1> given, double center, const std::vector<size_t>& places) {
        std::vector<double> distances = copied(given);
        for (double& own : distances) own = std::fabs(own - center);
        return values_at(distances, places);
    });
    m.def("sorted_rows", [](In<double, 2> given, int n_threads) {
        const size_t n_rows = given.shape(0), n = given.shape(1);
        std::vector<double> rows = copied(given);
        run_freely(n_threads, [&](const Run& run) { sort_rows(rows.data(), n_rows, n, run); });
        return array_of(std::move(rows), {n_rows, n});
    });
    m.def("count_floats", &counted<float>);
    m.def("count_doubles", &counted<double>);

    m.def("score", [](const PyRows& table, std::vector<std::pair<const PyBranch*, const BranchRanks*>> branches,
                      bool is_ranked, int n_threads) {
        std::vector<std::vector<double>> scores;
        std::vector<RankedBranch> ranked;
        for (const auto& [branch, ranks] : branches) {
            require(branch != nullptr && ranks != nullptr, "a branch has distributions");
            require(branch->branch->n_views() == ranks->n_views(), "a branch has a distribution per view");
            if (is_ranked) branch_of(*ranks);
            scores.emplace_back(table.rows.n_rows());
            ranked.push_back({&branch->for_rows(table), ranks, scores.back().data(), is_ranked});
        }
        run_freely(n_threads, [&](const Run& run) { score(table.rows, ranked, run); });
        nb::list result;
        for (auto& one : scores) result.append(array_of(std::move(one)));
        return result;
    });
}
