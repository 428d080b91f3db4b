#include "ranks.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels.h"

namespace rgld {
namespace {

template <class T>
struct Bits;
template <>
struct Bits<float> {
    using Key = uint32_t;
};
template <>
struct Bits<double> {
    using Key = uint64_t;
};

// The bits of a number as an integer that orders as the number does.
template <class T>
typename Bits<T>::Key ordered_key(T value) {
    using Key = typename Bits<T>::Key;
    Key key;
    std::memcpy(&key, &value, sizeof key);
    const Key sign = Key(1) << (8 * sizeof key - 1);
    return key & sign ? ~key : key | sign;
}

struct RunOfTies {
    size_t first, last;  // [first, last)
};

template <class T>
RunOfTies run_at(const std::vector<T>& sorted, size_t place) {
    const T value = sorted[place];
    const bool alone = (place == 0 || sorted[place - 1] < value) && (place + 1 == sorted.size() || value < sorted[place + 1]);
    if (alone) return {place, place + 1};
    const auto range = std::equal_range(sorted.begin(), sorted.end(), value);
    return {size_t(range.first - sorted.begin()), size_t(range.second - sorted.begin())};
}

constexpr int kDigitBits = 11;
constexpr size_t kDigits = size_t(1) << kDigitBits;
constexpr size_t kShortSort = 1024;

constexpr size_t kMostBuckets = 4096;
constexpr size_t kRoom = 64;     // for the knots behind the last
constexpr size_t kLookups = 64;  // scores looked up side by side
constexpr size_t kLowShare = 256;  // the lowest 1 / 256 of the knots may share a bucket

uint32_t gap_key(double gap) {
    const float narrow = float(gap) + 0.0f;  // -0 and 0 are one value
    uint32_t key;
    std::memcpy(&key, &narrow, sizeof key);
    return key;
}


// Sorts by the digits from `first_pass` upward, keeping the order of what they do not tell apart.
template <class T>
void sort_by_digits(std::vector<T>& values, std::vector<T>& buffer, int first_pass) {
    using Key = typename Bits<T>::Key;
    constexpr int n_passes = (8 * int(sizeof(Key)) + kDigitBits - 1) / kDigitBits;
    const size_t n = values.size();
    std::vector<uint32_t> counts(size_t(n_passes) * kDigits);
    for (const T value : values) {
        const Key key = ordered_key(value);
        for (int pass = first_pass; pass < n_passes; ++pass)
            ++counts[size_t(pass) * kDigits + ((key >> (pass * kDigitBits)) & (kDigits - 1))];
    }
    buffer.resize(n);
    for (int pass = first_pass; pass < n_passes; ++pass) {
        uint32_t* count = counts.data() + size_t(pass) * kDigits;
        uint32_t place = 0;
        bool one_digit = false;
        for (size_t digit = 0; digit < kDigits; ++digit) {
            one_digit |= count[digit] == n;
            const uint32_t here = count[digit];
            count[digit] = place;
            place += here;
        }
        if (one_digit) continue;
        for (const T value : values)
            buffer[count[(ordered_key(value) >> (pass * kDigitBits)) & (kDigits - 1)]++] = value;
        values.swap(buffer);
    }
}

// Finishes a nearly sorted list; false if it takes more than a few moves a value.
template <class T>
bool finish_by_insertion(std::vector<T>& values) {
    size_t moves = 4 * values.size();
    for (size_t i = 1; i < values.size(); ++i) {
        const T value = values[i];
        size_t place = i;
        for (; place > 0 && values[place - 1] > value; --place) {
            if (moves-- == 0) {
                values[place] = value;
                return false;
            }
            values[place] = values[place - 1];
        }
        values[place] = value;
    }
    return true;
}

}  // namespace

template <class T>
void radix_sort(std::vector<T>& values, std::vector<T>& buffer) {
    if (values.size() < kShortSort || values.size() > std::numeric_limits<uint32_t>::max()) {
        std::sort(values.begin(), values.end());
        return;
    }
    // The upper half of a float64's bits tells nearly all values apart.
    if (sizeof(T) == 8) {
        sort_by_digits(values, buffer, 3);
        if (finish_by_insertion(values)) return;
    }
    sort_by_digits(values, buffer, 0);
}

template void radix_sort<float>(std::vector<float>&, std::vector<float>&);
template void radix_sort<double>(std::vector<double>&, std::vector<double>&);

template <class T>
std::vector<Knot<T>> fit_knots(const std::vector<T>& sorted, size_t exact_size, const double* grid, size_t grid_size) {
    const size_t n = sorted.size();
    const double per_row = rank_unit(double(n)) / (2.0 * double(n));  // 1, but for more rows than levels
    const auto rank = [n](RunOfTies run) { return double(run.first + run.last) / (2.0 * double(n)); };
    size_t n_distinct = 1;
    for (size_t i = 1; i < n; ++i) n_distinct += sorted[i] > sorted[i - 1];

    std::vector<Knot<T>> knots;
    const auto keep = [&](RunOfTies run) {
        knots.push_back({sorted[run.first], decltype(Knot<T>::level)(std::rint(double(run.first + run.last) * per_row))});
    };
    if (n_distinct <= exact_size) {
        knots.reserve(n_distinct + kRoom);
        for (size_t first = 0, i = 1; i <= n; ++i) {
            if (i == n || sorted[i] > sorted[first]) {
                keep({first, i});
                first = i;
            }
        }
        return knots;
    }
    // The first run whose rank is at least the grid's, and the one before it.
    std::vector<size_t> kept;
    for (size_t g = 0; g < grid_size; ++g) {
        RunOfTies run = run_at(sorted, std::min(n - 1, size_t(std::max(0.0, grid[g] * double(n)))));
        while (rank(run) < grid[g] && run.last < n) run = run_at(sorted, run.last);
        while (run.first > 0) {
            const RunOfTies before = run_at(sorted, run.first - 1);
            if (rank(before) < grid[g]) {
                kept.push_back(before.first);
                break;
            }
            run = before;
        }
        kept.push_back(run.first);
    }
    std::sort(kept.begin(), kept.end());
    kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
    knots.reserve(kept.size() + kRoom);
    for (const size_t first : kept) keep(run_at(sorted, first));
    return knots;
}

template std::vector<Knot<float>> fit_knots<float>(const std::vector<float>&, size_t, const double*, size_t);
template std::vector<Knot<double>> fit_knots<double>(const std::vector<double>&, size_t, const double*, size_t);

namespace {

// Sorts by buckets over the bits of (score - lowest), as Cdf has them, then by insertion.
void sort_scores(const float* scores, size_t n, std::vector<Placed>& sorted, std::vector<uint16_t>& bucket_of) {
    constexpr size_t kBuckets = 8192, kSample = 64;
    const auto [least, greatest] = std::minmax_element(scores, scores + n);
    const float lowest = *least, highest = *greatest;
    // The lowest of a sample: below it, one bucket is enough.
    float low = highest;
    for (size_t i = 0; i < n; i += 1 + n / kSample)
        if (scores[i] > lowest) low = std::min(low, scores[i]);
    const uint32_t low_key = gap_key(low - lowest), span = gap_key(highest - lowest) - low_key;
    int shift = 0;
    while ((span >> shift) >= kBuckets) ++shift;
    uint16_t places[kBuckets] = {};
    bucket_of.resize(n);
    for (size_t i = 0; i < n; ++i)
        bucket_of[i] = uint16_t((std::max(gap_key(scores[i] - lowest), low_key) - low_key) >> shift);
    for (size_t i = 0; i < n; ++i) ++places[bucket_of[i]];
    uint16_t place = 0;
    for (size_t b = 0; b <= span >> shift; ++b) {
        const uint16_t here = places[b];
        places[b] = place;
        place = uint16_t(place + here);
    }
    sorted.resize(n);
    for (size_t i = 0; i < n; ++i) sorted[places[bucket_of[i]]++] = {scores[i], uint32_t(i)};
    size_t moves = 16 * n;
    for (size_t i = 1; i < n; ++i) {
        const Placed one = sorted[i];
        size_t to = i;
        for (; to > 0 && sorted[to - 1].score > one.score && moves > 0; --to, --moves) sorted[to] = sorted[to - 1];
        sorted[to] = one;
    }
    if (moves == 0)
        std::sort(sorted.begin(), sorted.end(), [](const Placed& a, const Placed& b) { return a.score < b.score; });
}

}  // namespace

std::vector<Knot<float>> fit_knots_and_rank(float* scores, size_t n, std::vector<Placed>& sorted,
                                            std::vector<uint16_t>& buckets) {
    sort_scores(scores, n, sorted, buckets);
    std::vector<Knot<float>> knots;
    knots.reserve(n + kRoom);
    for (size_t first = 0, last; first < n; first = last) {
        const float score = sorted[first].score;
        for (last = first + 1; last < n && sorted[last].score == score;) ++last;
        knots.push_back({score, uint32_t(first + last)});
        for (size_t i = first; i < last; ++i) scores[sorted[i].row] = float(first + last);
    }
    return knots;
}

double rank_unit(double n_rows) { return std::min(2.0 * n_rows, double(std::numeric_limits<uint32_t>::max() - 1)); }

template <class T>
Cdf<T>::Cdf(std::vector<Knot<T>> knots, double n_rows, double smallest_range)
    : knots_(std::move(knots)),
      n_knots_(knots_.size()),
      lowest_(knots_.front().value),
      highest_(knots_.back().value),
      rank_unit_(rank_unit(n_rows)),
      edge_(0.5 / n_rows) {
    const double lowest = double(lowest_), highest = double(highest_);
    tail_unit_ = n_knots_ > 1 ? std::max(highest - lowest, smallest_range) : std::max(std::fabs(lowest), 1.0);
    lowest_key_ = gap_key(knots_[n_knots_ / kLowShare].value - lowest_);
    const uint32_t span = gap_key(highest_ - lowest_) - lowest_key_;
    const size_t most_buckets = std::min(kMostBuckets, 2 * n_knots_);
    while ((span >> shift_) >= most_buckets) ++shift_;
    last_bucket_ = span >> shift_;
    // The first knot of each bucket; where there is none, the next bucket's.
    starts_.assign(last_bucket_ + 1, kMostKnots);
    for (size_t j = n_knots_; j-- > 0;) starts_[bucket(knots_[j].value)] = uint16_t(j);
    size_t fullest = 1;
    for (size_t b = last_bucket_ + 1, next = n_knots_; b-- > 0; next = starts_[b]) {
        starts_[b] = uint16_t(std::min<size_t>(starts_[b], next));
        fullest = std::max(fullest, next - starts_[b]);
    }
    while (2 * first_step_ <= fullest) first_step_ *= 2;
    knots_.resize(n_knots_ + 2 * first_step_, {std::numeric_limits<T>::infinity(), knots_.back().level});
}

template <class T>
inline size_t Cdf<T>::bucket(T score) const {
    const uint32_t key = std::max(gap_key(score - lowest_), lowest_key_);
    return std::min((key - lowest_key_) >> shift_, last_bucket_);
}

template <class T>
double Cdf<T>::tail_level(T score) const {
    const double x = double(score), lowest = double(lowest_), highest = double(highest_);
    const double rank = x > highest ? 1.0 - edge_ / (1.0 + std::log1p((x - highest) / tail_unit_))
                                    : edge_ / (1.0 + std::log1p((lowest - x) / tail_unit_));
    return rank * rank_unit_;
}

template <class T>
inline void Cdf<T>::find(const T* scores, size_t n, uint32_t* places) const {
    for (size_t i = 0; i < n; ++i) places[i] = starts_[bucket(scores[i])];
    for (size_t step = first_step_; step > 0; step /= 2)
        for (size_t i = 0; i < n; ++i)
            places[i] += knots_[places[i] + step - 1].value <= scores[i] ? uint32_t(step) : 0u;
}

template <class T>
void Cdf<T>::count(const T* scores, size_t n, int64_t* counts) const {
    for (size_t start = 0; start < n; start += kLookups) {
        const size_t size = std::min(kLookups, n - start);
        const T* score = scores + start;
        T inside[kLookups];
        uint32_t place[kLookups];
        for (size_t i = 0; i < size; ++i) inside[i] = std::min(std::max(score[i], lowest_), highest_);
        find(inside, size, place);
        for (size_t i = 0; i < size; ++i) {
            const size_t j = std::max(place[i], 1u) - 1;  // the knot at or below
            ++counts[score[i] < lowest_ ? 0 : 2 * j + 1 + (score[i] > knots_[j].value)];
        }
    }
}

template <class T>
void Cdf<T>::add_ranks(const T* scores, size_t n, double* sums) const {
    for (size_t start = 0; start < n; start += kLookups) {
        const size_t count = std::min(kLookups, n - start);
        const T* score = scores + start;
        // A score beyond the knots is taken as the nearest of them, and seen to later.
        T inside[kLookups];
        uint32_t place[kLookups];  // in the end the number of knots at or below the score
        double level[kLookups];
        bool all_inside = true;
        for (size_t i = 0; i < count; ++i) {
            inside[i] = std::min(std::max(score[i], lowest_), highest_);
            all_inside &= inside[i] == score[i];
        }
        find(inside, count, place);
        for (size_t i = 0; i < count; ++i) {
            // At least the lowest knot, unless a NaN came in.
            const size_t j = std::max(place[i], 1u) - 1;
            const Knot<T> below = knots_[j], above = knots_[j + 1];
            const double share = (double(inside[i]) - double(below.value)) / (double(above.value) - double(below.value));
            level[i] = double(below.level) + share * (double(above.level) - double(below.level));
        }
        if (!all_inside) {
            for (size_t i = 0; i < count; ++i)
                if (inside[i] != score[i]) level[i] = tail_level(score[i]);
        }
        for (size_t i = 0; i < count; ++i) sums[start + i] += level[i];
    }
}

template class Cdf<float>;
template class Cdf<double>;

void take_logarithms(const Standard& standard, float* scores, size_t n) {
    if (standard.smallest > 0.0f) kernels().logarithms(scores, n, standard.smallest);
}

Standard fit_standard(const float* scores, size_t n, float smallest, double smallest_scale) {
    // Blocks first, then the blocks, so that rounding does not grow with n.
    constexpr size_t kBlock = 1024;
    const auto mean_of = [&](auto&& term) {
        double total = 0.0;
        for (size_t start = 0; start < n; start += kBlock) {
            double sum = 0.0;
            for (size_t i = start; i < std::min(n, start + kBlock); ++i) sum += term(double(scores[i]));
            total += sum;
        }
        return total / double(n);
    };
    const double mean = mean_of([](double x) { return x; });
    const double variance = mean_of([mean](double x) { return (x - mean) * (x - mean); });
    return {smallest, float(mean), float(std::max(std::sqrt(variance), smallest_scale))};
}

void add_standardized(const Standard& standard, Bounds bounds, const float* scores, size_t n, double* sums) {
    const float center = standard.center, scale = standard.scale;
    for (size_t i = 0; i < n; ++i)
        sums[i] += double(std::min(std::max((scores[i] - center) / scale, bounds.low), bounds.high));
}

double mean_rank(double sum, size_t n_views, double unit) {
    return std::rint(sum / unit / double(n_views) * 1e12) / 1e12;
}

}  // namespace rgld
