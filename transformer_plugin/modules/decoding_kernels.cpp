// What torch has no kernel for in step-by-step decoding on a CPU: attention with one query a
// hypothesis over keys that lie anywhere, and the likeliest classes with their normaliser.
// Plain C functions for compiled_cache.py and candidates.py; tensors are given by their first
// element.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "cached_attention.h"
#include "vectors.h"

namespace {

constexpr int kBlock = 4 * kLanes;  // classes of which a maximum is kept

template <class Number>
float block_maximum(const Number* x, int64_t classes) {
    Floats top = Floats{} + kMinusInfinity;
    int64_t i = 0;
    for (; i + kLanes <= classes; i += kLanes) top = larger(top, load(x + i));
    if (i < classes) top = larger(top, load(x + i, classes - i, kMinusInfinity));
    return largest(top);
}

// The k largest numbers so far, largest first; of equal ones, the first to come.
struct Ranking {
    int64_t k;
    float* values;
    int64_t* classes;

    void clear() const {
        for (int64_t i = 0; i < k; ++i) values[i] = kMinusInfinity, classes[i] = 0;
    }

    void add(float value, int64_t number) const {
        if (!(value > values[k - 1])) return;
        int64_t i = k - 1;
        for (; i > 0 && value > values[i - 1]; --i) {
            values[i] = values[i - 1];
            classes[i] = classes[i - 1];
        }
        values[i] = value;
        classes[i] = number;
    }
};

float as_float(float x) { return x; }
float as_float(BFloat16 x) {
    const uint32_t wide = uint32_t(x.bits) << 16;
    float v;
    std::memcpy(&v, &wide, sizeof v);
    return v;
}

// The k largest numbers of a row. They lie in the k blocks of the largest maxima.
template <class Number>
void find_largest(const Number* x, int64_t size, const std::vector<float>& maxima,
                  const Ranking& found) {
    found.clear();
    for (size_t b = 0; b < maxima.size(); ++b) found.add(maxima[b], b);
    const float least = found.values[found.k - 1];
    found.clear();
    for (size_t b = 0; b < maxima.size(); ++b) {
        if (maxima[b] < least) continue;
        const int64_t end = std::min(size, (int64_t(b) + 1) * kBlock);
        for (int64_t i = b * kBlock; i < end; ++i) found.add(as_float(x[i]), i);
    }
}

struct Choice {  // as candidates.py's
    int64_t rows, num_classes, k, num_biases;
    const int64_t* biased;  // classes whose log-probability is changed for the choice
    const float* biases;    // by so much; minus infinity takes them out
};

// Of each row of logits the k classes to choose, and their log-probabilities.
//   asked: a class of each row; its log-probability, without bias, goes to asked_log_p.
template <class Number>
void likeliest(const Choice& c, const Number* logits, const int64_t* asked, float* log_p,
               int64_t* classes, float* asked_log_p) {
    const int64_t more = c.k + c.num_biases;  // so many that k are left in any case
    std::vector<float> maxima((c.num_classes + kBlock - 1) / kBlock), values(more);
    std::vector<int64_t> numbers(more);
    const Ranking found{more, values.data(), numbers.data()};
    for (int64_t r = 0; r < c.rows; ++r) {
        const Number* x = logits + r * c.num_classes;
        float top = kMinusInfinity;
        for (size_t b = 0; b < maxima.size(); ++b) {
            const int64_t start = b * kBlock;
            maxima[b] = block_maximum(x + start, std::min<int64_t>(kBlock, c.num_classes - start));
            top = std::max(top, maxima[b]);
        }
        Floats total{};
        int64_t i = 0;
        for (; i + kLanes <= c.num_classes; i += kLanes) total += exponential(load(x + i) - top);
        if (i < c.num_classes)
            total += exponential(load(x + i, c.num_classes - i, kMinusInfinity) - top);
        const float log_z = top + std::log(sum(total));
        asked_log_p[r] = as_float(x[asked[r]]) - log_z;

        find_largest(x, c.num_classes, maxima, found);
        const Ranking chosen{c.k, log_p + r * c.k, classes + r * c.k};
        chosen.clear();
        for (int64_t j = 0; j < more; ++j) {
            float value = found.values[j] - log_z;
            for (int64_t b = 0; b < c.num_biases; ++b)
                if (c.biased[b] == found.classes[j]) value += c.biases[b];
            chosen.add(value, found.classes[j]);
        }
    }
}

}  // namespace

// One C function for each type of number.
#define EXPORT(Number, suffix)                                                                   \
    extern "C" void attend_past_##suffix(                                                        \
        const Attention* a, const Number* q, Number* out, int64_t steps,                         \
        const Number* const* rows, const int32_t* ancestors, int64_t ancestor_stride,            \
        int64_t key_offset, int64_t value_offset) {                                              \
        attend_past(*a, q, out, steps, rows, ancestors, ancestor_stride, key_offset,             \
                    value_offset);                                                               \
    }                                                                                            \
    extern "C" void attend_memory_##suffix(const Attention* a, const Number* q, Number* out,     \
                                           int64_t width, const Number* rows,                    \
                                           const int64_t* starts, const int64_t* lengths) {      \
        attend_memory(*a, q, out, width, rows, starts, lengths);                                 \
    }                                                                                            \
    extern "C" void likeliest_##suffix(const Choice* c, const Number* logits,                    \
                                       const int64_t* asked, float* log_p, int64_t* classes,     \
                                       float* asked_log_p) {                                     \
        likeliest(*c, logits, asked, log_p, classes, asked_log_p);                               \
    }

EXPORT(float, float32)
EXPORT(BFloat16, bfloat16)
