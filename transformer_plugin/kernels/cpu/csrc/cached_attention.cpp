// Attention of a step of decoding, one query a hypothesis, over keys and values that lie anywhere:
// those of its own past, and those of the encoder's output.
// Plain C functions for decoder_cache.py; tensors are given by their first element.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "vectors.h"

namespace {

struct Attention {  // as decoder_cache.py's
    int64_t queries, heads, d_k, d_v;
    int64_t query_stride, row_stride, out_stride;  // numbers from one row to the next
    float scale;
};

// kVectors vectors of softmax(...) V.
template <int kVectors, class Number, class Row>
void average(const float* weights, int64_t count, Row values, Number* out) {
    Floats context[kVectors] = {};
    for (int64_t t = 0; t < count; ++t)
        for (int n = 0; n < kVectors; ++n)
            context[n] += weights[t] * load(values(t) + n * kLanes);
    for (int n = 0; n < kVectors; ++n) store(context[n], out + n * kLanes);
}

// softmax(scale q K^T) V of one query in all heads, equation (1).
//   keys(t), values(t): where those of the first head are, of `count` positions.
//   weights: room for four numbers more than positions, in whole vectors.
template <class Number, class Keys, class Values>
void attend(const Attention& a, const Number* q, int64_t count, Keys keys, Values values,
            float* weights, Number* out) {
    for (int64_t h = 0; h < a.heads; ++h, q += a.d_k, out += a.d_v) {
        for (int64_t t = 0; t < count; t += 4) {
            const Number* of_four[4];
            for (int j = 0; j < 4; ++j) of_four[j] = keys(std::min(t + j, count - 1)) + h * a.d_k;
            Floats products[4] = {};
            for (int64_t i = 0; i < a.d_k; i += kLanes) {
                const Floats asked = load(q + i) * a.scale;
                for (int j = 0; j < 4; ++j) products[j] += asked * load(of_four[j] + i);
            }
            sums(products, weights + t);
        }
        softmax(weights, count, in_lanes(count));
        constexpr int kVectors = 4;
        int64_t i = 0;
        const auto value = [&](int64_t t) { return values(t) + h * a.d_v + i; };
        for (; i + kVectors * kLanes <= a.d_v; i += kVectors * kLanes)
            average<kVectors>(weights, count, value, out + i);
        for (; i < a.d_v; i += kLanes) average<1>(weights, count, value, out + i);
    }
}

// Query r sees, of the rows made at step t, the one of number ancestors[r][t].
template <class Number>
void attend_past(const Attention& a, const Number* q, Number* out, int64_t steps,
                 const Number* const* rows, const int32_t* ancestors, int64_t ancestor_stride,
                 int64_t key_offset, int64_t value_offset) {
    std::vector<float> weights(in_lanes(steps + 4));
    for (int64_t r = 0; r < a.queries; ++r, ancestors += ancestor_stride) {
        const auto row = [&](int64_t t) { return rows[t] + ancestors[t] * a.row_stride; };
        attend(
            a, q + r * a.query_stride, steps, [&](int64_t t) { return row(t) + key_offset; },
            [&](int64_t t) { return row(t) + value_offset; }, weights.data(),
            out + r * a.out_stride);
    }
}

// The `width` queries of sentence b see the rows starts[b] to starts[b] + lengths[b].
template <class Number>
void attend_memory(const Attention& a, const Number* q, Number* out, int64_t width,
                   const Number* rows, const int64_t* starts, const int64_t* lengths) {
    std::vector<float> weights;
    for (int64_t r = 0; r < a.queries; ++r) {
        const int64_t b = r / width;
        const Number* keys = rows + starts[b] * a.row_stride;
        const Number* values = keys + a.heads * a.d_k;
        weights.resize(in_lanes(lengths[b] + 4));
        attend(
            a, q + r * a.query_stride, lengths[b],
            [&](int64_t t) { return keys + t * a.row_stride; },
            [&](int64_t t) { return values + t * a.row_stride; }, weights.data(),
            out + r * a.out_stride);
    }
}

}  // namespace

// Its size and where its fields are, which a test compares with Python's.
extern "C" const int64_t attention_layout[] = {
    sizeof(Attention), offsetof(Attention, queries), offsetof(Attention, heads),
    offsetof(Attention, d_k), offsetof(Attention, d_v), offsetof(Attention, query_stride),
    offsetof(Attention, row_stride), offsetof(Attention, out_stride), offsetof(Attention, scale)};

// Functions for each type of number.
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
    }

EXPORT(float, float32)
EXPORT(BFloat16, bfloat16)
