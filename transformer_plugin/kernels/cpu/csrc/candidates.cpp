// The likeliest classes of rows of logits, with their normaliser.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "vectors.h"

namespace {

struct Found {
    float logit;
    int64_t number;
};

// The found.size() largest elements of a row, largest first; equal ones keep their order.
template <class Number>
void find_largest(const Number* x, int64_t size, std::vector<Found>& found) {
    std::fill(found.begin(), found.end(), Found{kMinusInfinity, 0});
    for (int64_t i = 0; i < size; i += kLanes) {
        const Floats logits = vector(x, size, i);
        for (uint32_t bits = above(logits, found.back().logit); bits; bits &= bits - 1) {
            const int j = __builtin_ctz(bits);
            const auto place = std::upper_bound(found.begin(), found.end(), logits[j],
                                                [](float v, Found f) { return v > f.logit; });
            if (place == found.end()) continue;  // the last one has been replaced since
            std::move_backward(place, found.end() - 1, found.end());
            *place = {logits[j], i + j};
        }
    }
}

// The k likeliest classes of each row of logits, and their log-probabilities.
//   biased, biases: classes with a bias, and the biases added to their log-probabilities.
//   asked: a requested class for each row; asked_log_p is its log-probability without bias.
template <class Number>
void likeliest(int64_t rows, int64_t num_classes, int64_t k, int64_t num_biases,
               const int64_t* biased, const float* biases, const Number* logits,
               const int64_t* asked, float* log_p, int64_t* classes, float* asked_log_p) {
    std::vector<Found> found(k + num_biases);  // so that at least k classes remain
    for (int64_t r = 0; r < rows; ++r, logits += num_classes) {
        find_largest(logits, num_classes, found);
        const float most = found[0].logit;
        Floats total{};
        for (int64_t i = 0; i < num_classes; i += kLanes)
            total += exponential(vector(logits, num_classes, i) - most);
        const float log_sum = std::log(sum(total));
        asked_log_p[r] = number(logits[asked[r]]) - most - log_sum;
        for (Found& f : found) {
            f.logit -= most;  // before anything smaller is added, which would lose digits
            for (int64_t b = 0; b < num_biases; ++b)
                if (biased[b] == f.number) f.logit += biases[b];
        }
        std::stable_sort(found.begin(), found.end(),
                         [](Found a, Found b) { return a.logit > b.logit; });
        for (int64_t j = 0; j < k; ++j, ++log_p, ++classes)
            *log_p = found[j].logit - log_sum, *classes = found[j].number;
    }
}

}  // namespace

EXPORT(likeliest)
