// What torch has no kernel for in step-by-step decoding on a CPU: attention with one query a
// hypothesis over keys that lie anywhere, and the likeliest classes with their normaliser.
// Plain C functions for decoder_cache.py and candidates.py; tensors are given by their first
// element.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "cached_attention.h"
#include "vectors.h"

namespace {

float as_float(float x) { return x; }
float as_float(BFloat16 x) {
    const uint32_t wide = uint32_t(x.bits) << 16;
    float v;
    std::memcpy(&v, &wide, sizeof v);
    return v;
}

void take_out(float& x) { x = kMinusInfinity; }
void take_out(BFloat16& x) { x.bits = 0xff80; }

// A row of numbers, whose largest can be taken out again and again.
template <class Number>
class Row {
   public:
    // maxima: room.
    Row(Number* x, int64_t size, std::vector<float>& maxima) : x_(x), size_(size), maxima_(maxima) {
        const int64_t blocks = (size + kBlock - 1) / kBlock;
        maxima_.resize(in_lanes(blocks), kMinusInfinity);
        for (int64_t b = 0; b < blocks; ++b) maxima_[b] = maximum(b);
    }

    float largest() const { return ::largest(maxima_.data(), maxima_.size()); }

    // The sum of e^(x - most).
    float exponentials(float most) const {
        Floats total{};
        for (int64_t i = 0; i < size_; i += kLanes) total += exponential(vector(i) - most);
        return sum(total);
    }

    // Where the largest is, the first of equal ones.
    int64_t take(float largest) {
        const int64_t b = std::find(maxima_.begin(), maxima_.end(), largest) - maxima_.begin();
        for (int64_t i = b * kBlock; i < std::min(size_, (b + 1) * kBlock); ++i)
            if (as_float(x_[i]) == largest) {
                take_out(x_[i]);
                maxima_[b] = maximum(b);
                return i;
            }
        return 0;  // among numbers that are none
    }

   private:
    static constexpr int kBlock = 4 * kLanes;  // numbers of which the maximum is kept

    Floats vector(int64_t i) const {
        return i + kLanes <= size_ ? load(x_ + i) : load(x_ + i, size_ - i, kMinusInfinity);
    }

    float maximum(int64_t b) const {
        Floats top = Floats{} + kMinusInfinity;
        const int64_t end = std::min(size_, (b + 1) * kBlock);
        for (int64_t i = b * kBlock; i < end; i += kLanes) top = larger(top, vector(i));
        return ::largest(top);
    }

    Number* x_;
    int64_t size_;
    std::vector<float>& maxima_;
};

struct Choice {  // as candidates.py's
    int64_t rows, num_classes, k, num_biases;
    const int64_t* biased;  // classes whose log-probability is changed for the choice
    const float* biases;    // by so much; minus infinity takes them out
};

// Of each row of logits, which are lost, the k classes to choose, and their log-probabilities.
//   asked: a class of each row; its log-probability, without bias, goes to asked_log_p.
template <class Number>
void likeliest(const Choice& c, Number* logits, const int64_t* asked, float* log_p,
               int64_t* classes, float* asked_log_p) {
    struct Found {
        float log_p;
        int64_t number;
    };
    std::vector<Found> found(c.k + c.num_biases);  // so many that k are left in any case
    std::vector<float> maxima;
    for (int64_t r = 0; r < c.rows; ++r, logits += c.num_classes) {
        Row<Number> row(logits, c.num_classes, maxima);
        const float top = row.largest(), log_z = top + std::log(row.exponentials(top));
        asked_log_p[r] = as_float(logits[asked[r]]) - log_z;
        for (Found& f : found) {
            const float largest = row.largest();
            f = {largest - log_z, row.take(largest)};
            for (int64_t b = 0; b < c.num_biases; ++b)
                if (c.biased[b] == f.number) f.log_p += c.biases[b];
        }
        std::stable_sort(found.begin(), found.end(),
                         [](const Found& a, const Found& b) { return a.log_p > b.log_p; });
        for (int64_t j = 0; j < c.k; ++j, ++log_p, ++classes)
            *log_p = found[j].log_p, *classes = found[j].number;
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
    extern "C" void likeliest_##suffix(const Choice* c, Number* logits,                          \
                                       const int64_t* asked, float* log_p, int64_t* classes,     \
                                       float* asked_log_p) {                                     \
        likeliest(*c, logits, asked, log_p, classes, asked_log_p);                               \
    }

EXPORT(float, float32)
EXPORT(BFloat16, bfloat16)
