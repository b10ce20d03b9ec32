// Attention with one query a hypothesis over keys and values that lie anywhere: over the rows of its
// own past, and over those of the encoder's output.

#pragma once

#include <cstdint>
#include <vector>

#include "vectors.h"

namespace {

// The numbers i to i + kVectors * kLanes of the weighted values, in registers.
template <int kVectors, class Number, class Value>
void average(int count, Value value, int i, const float* weights, float share, Number* out) {
    Floats context[kVectors] = {};
    for (int t = 0; t < count; ++t) {
        const Number* v = value(t) + i;
        for (int j = 0; j < kVectors; ++j) context[j] += weights[t] * load(v + j * kLanes);
    }
    for (int j = 0; j < kVectors; ++j) store(context[j] * share, out + i + j * kLanes);
}

// softmax(scale q K^T) V of one query and one head, equation (1).
//   key(t), value(t): where the t-th of `count` keys and values is; widths are multiples of kLanes.
//   scores: room for count + kLanes numbers.
template <class Number, class Key, class Value>
void attend(const Number* q, Number* out, int count, Key key, Value value, int d_k, int d_v,
            float scale, float* scores) {
    float top = kMinusInfinity;
    for (int t = 0; t < count; ++t) {
        const Number* k = key(t);
        Floats product{};
        for (int i = 0; i < d_k; i += kLanes) product += load(q + i) * load(k + i);
        scores[t] = scale * sum(product);
        top = scores[t] > top ? scores[t] : top;
    }
    for (int t = count; t < count + kLanes; ++t) scores[t] = kMinusInfinity;
    Floats total{};
    for (int t = 0; t < count; t += kLanes) {
        const Floats e = exponential(load(scores + t) - top);
        store(e, scores + t);
        total += e;
    }
    const float share = 1 / sum(total);
    int i = 0;
    for (; i + 4 * kLanes <= d_v; i += 4 * kLanes)
        average<4>(count, value, i, scores, share, out);
    for (; i < d_v; i += kLanes) average<1>(count, value, i, scores, share, out);
}

struct Attention {  // as compiled_cache.py's
    int64_t queries, heads, d_k, d_v, query_stride, row_stride, out_stride;
    float scale;
};

// Query r sees, of the rows made at step t, the one of number ancestors[r][t].
template <class Number>
void attend_past(const Attention& a, const Number* q, Number* out, int64_t steps,
                 const Number* const* rows, const int32_t* ancestors, int64_t ancestor_stride,
                 int64_t key_offset, int64_t value_offset) {
    std::vector<float> scores(steps + kLanes);
    std::vector<const Number*> seen(steps);
    for (int64_t r = 0; r < a.queries; ++r) {
        const int32_t* ancestor = ancestors + r * ancestor_stride;
        for (int64_t t = 0; t < steps; ++t) seen[t] = rows[t] + ancestor[t] * a.row_stride;
        for (int64_t h = 0; h < a.heads; ++h) {
            const int64_t k = key_offset + h * a.d_k, v = value_offset + h * a.d_v;
            attend(q + r * a.query_stride + h * a.d_k, out + r * a.out_stride + h * a.d_v, steps,
                   [&](int t) { return seen[t] + k; }, [&](int t) { return seen[t] + v; }, a.d_k,
                   a.d_v, a.scale, scores.data());
        }
    }
}

// The `width` queries of sentence b see the rows starts[b] to starts[b] + lengths[b].
template <class Number>
void attend_memory(const Attention& a, const Number* q, Number* out, int64_t width,
                   const Number* rows, const int64_t* starts, const int64_t* lengths) {
    std::vector<float> scores;
    for (int64_t b = 0; b < a.queries / width; ++b) {
        scores.resize(lengths[b] + kLanes);
        for (int64_t h = 0; h < a.heads; ++h) {
            const Number* keys = rows + starts[b] * a.row_stride + h * a.d_k;
            const Number* values =
                rows + starts[b] * a.row_stride + a.heads * a.d_k + h * a.d_v;
            for (int64_t r = b * width; r < (b + 1) * width; ++r)
                attend(q + r * a.query_stride + h * a.d_k, out + r * a.out_stride + h * a.d_v,
                       lengths[b], [&](int t) { return keys + t * a.row_stride; },
                       [&](int t) { return values + t * a.row_stride; }, a.d_k, a.d_v, a.scale,
                       scores.data());
        }
    }
}

}  // namespace
