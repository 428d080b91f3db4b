// Times the sorts of the core against what they replace: `make time-sorts`. Every call gets other values, as in a fit:
// on the same values again and again, the processor learns the branches of std::sort and flatters it.
#include <cstdio>
#include <ctime>
#include <random>

// Some of what is timed is private to these files.
#include "branches.cpp"
#include "ranks.cpp"

namespace rgld {
namespace {

// Microseconds of processor time for one call, the best of three rounds over all tables.
template <class T, class Call>
double microseconds(const std::vector<std::vector<T>>& tables, Call&& call) {
    double best = 1e300;
    for (int round = 0; round < 3; ++round) {
        const std::clock_t start = std::clock();
        for (const auto& table : tables) call(table);
        const double elapsed = double(std::clock() - start) / CLOCKS_PER_SEC;
        best = std::min(best, 1e6 * elapsed / double(tables.size()));
    }
    return best;
}

template <class T, class Value>
std::vector<std::vector<T>> tables_of(size_t n, Value&& value) {
    std::mt19937_64 random(0);
    std::normal_distribution<double> normal;
    std::vector<std::vector<T>> tables(std::max<size_t>(2, 700'000 / n), std::vector<T>(n));
    for (auto& table : tables)
        for (T& x : table) x = T(value(normal(random)));
    return tables;
}

void print(const char* what, size_t n, double now, const char* other, double then) {
    std::printf("%-38s n = %7zu: %9.1f us; %-28s %9.1f us, ratio %.2f\n", what, n, now, other, then, then / now);
}

template <class T, class Value>
void time_sort(const char* what, size_t n, Value&& value) {
    const auto tables = tables_of<T>(n, value);
    std::vector<T> copy, buffer;
    const double now = microseconds(tables, [&](const auto& table) { copy = table, sort_values(copy, buffer); });
    const double by_std = microseconds(tables, [&](const auto& table) {
        copy = table;
        std::sort(copy.begin(), copy.end());
    });
    const double by_digits = microseconds(tables, [&](const auto& table) {
        copy = table, sort_by_digits<8 * sizeof(T)>(copy, buffer, 0, ordered_key<T>);
    });
    print(what, n, now, "std::sort", by_std);
    print(what, n, now, "digits of all bits", by_digits);
}

}  // namespace
}  // namespace rgld

int main() {
    using namespace rgld;
    const auto normal = [](double z) { return z; };
    const auto skewed = [](double z) { return std::exp(3.0 * z); };
    const auto four_values = [](double z) { return std::min(std::floor(2.0 * std::fabs(z)), 3.0); };
    for (const size_t n : {64, 256, 7'000, 1'000'000}) {
        time_sort<float>("sort_values, float32, normal", n, normal);
        time_sort<double>("sort_values, float64, normal", n, normal);
        time_sort<double>("sort_values, float64, log-normal", n, skewed);
        time_sort<double>("sort_values, float64, four values", n, four_values);
    }

    const auto squares = tables_of<float>(8192, [](double z) { return z * z; });
    volatile double sink = 0.0;
    std::vector<float> copy;
    const double counted =
        microseconds(squares, [&](const auto& table) { sink = median_root(table.data(), table.size()); });
    const double selected = microseconds(squares, [&](const auto& table) {
        copy = table;
        const auto middle = copy.begin() + ptrdiff_t(copy.size() / 2);
        std::nth_element(copy.begin(), middle, copy.end());
        sink = double(*middle + *std::max_element(copy.begin(), middle));
    });
    print("median_root", 8192, counted, "nth_element of all values", selected);

    // Neighbours: the network of up to 15 against the insertion for more.
    constexpr size_t kDims = 5, kReferences = 400;
    const auto references = tables_of<float>(kDims * kReferences, normal);
    for (const size_t n : {7'008, 1'000'000}) {
        const auto points = tables_of<float>(kDims * n, normal);
        std::vector<float> distances(n), scratch(local_scratch(16));
        const auto time_of = [&](size_t n_neighbors) {
            return microseconds(points, [&](const auto& table) {
                kernels().local_scores(table.data(), n, n, kDims, references[0].data(), kReferences, n_neighbors,
                                       scratch.data(), distances.data());
            });
        };
        print("nearest 15 of 400, by a network", n, time_of(15), "nearest 16, by insertion", time_of(16));
    }
}
