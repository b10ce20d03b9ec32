// Attention in one decoding step, with one query for each hypothesis, over keys and values at
// arbitrary addresses: those of its own past, and those of the encoder's output.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "attention_step.h"
#include "vectors.h"

namespace {

template <class Number>
using Rows = std::vector<const Number*>;  // addresses of keys; the values follow the keys

// kVectors vectors of softmax(...) V, from element `first` of each row.
template <int kVectors, class Number>
void average(const float* weights, const Rows<Number>& rows, int64_t first, Number* out) {
    Floats context[kVectors] = {};
    for (size_t t = 0; t < rows.size(); ++t)
        for (int n = 0; n < kVectors; ++n)
            context[n] += weights[t] * load(rows[t] + first + n * kLanes);
    for (int n = 0; n < kVectors; ++n) store(context[n], out + n * kLanes);
}

// softmax(scale q K^T) V of one query in head h, equation (1).
//   q, out: of this head.
//   weights: buffer for four more elements than rows, rounded up to whole vectors.
template <class Number>
void attend(const Attention& a, int64_t h, const Number* q, const Rows<Number>& rows,
            float* weights, Number* out) {
    const int64_t count = rows.size(), keys = h * a.d_k, values = a.heads * a.d_k + h * a.d_v;
    for (int64_t t = 0; t < count; t += 4) {
        const Number* of_four[4];
        for (int j = 0; j < 4; ++j) of_four[j] = rows[std::min(t + j, count - 1)] + keys;
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
    for (; i + kVectors * kLanes <= a.d_v; i += kVectors * kLanes)
        average<kVectors>(weights, rows, values + i, out + i);
    for (; i < a.d_v; i += kLanes) average<1>(weights, rows, values + i, out + i);
}

// Starts to load one of a.heads equal parts of each row into the processor's cache.
template <class Number>
void prefetch(const Attention& a, int64_t part, const Rows<Number>& rows) {
    const int64_t width = a.d_k + a.d_v;
    for (const Number* row : rows)
        for (int64_t i = part * width; i < (part + 1) * width; i += 64 / sizeof(Number))
            __builtin_prefetch(row + i);
}

// Attention of all queries, with outputs of all heads in a row.
template <class Number>
void attend_rows(const Attention& a, const Number* q, Number* out) {
    const int64_t groups = a.queries ? a.queries / a.group : 0;
    const auto find = [&](int64_t g, Rows<Number>& rows) {
        rows.resize(g == groups ? 0 : a.lengths ? a.lengths[g] : a.positions);
        const int32_t* numbers = a.row_numbers + g * a.group_stride;
        for (size_t t = 0; t < rows.size(); ++t)
            rows[t] = static_cast<const Number*>(a.keys[t]) +
                      numbers[t * a.position_stride] * a.row_stride;
    };
    Rows<Number> rows, next;
    std::vector<float> weights;
    find(0, rows);
    for (int64_t g = 0; g < groups; ++g, rows.swap(next)) {
        find(g + 1, next);
        weights.resize(in_lanes(rows.size() + 4));
        for (int64_t h = 0; h < a.heads; ++h) {
            prefetch(a, h, next);  // memory works during the arithmetic
            for (int64_t r = g * a.group; r < (g + 1) * a.group; ++r)
                attend(a, h, q + r * a.query_stride + h * a.d_k, rows, weights.data(),
                       out + (r * a.heads + h) * a.d_v);
        }
    }
}

}  // namespace

// Size and field offsets of Attention; a test compares them with Python's.
extern "C" const int64_t attention_layout[] = {
    sizeof(Attention), offsetof(Attention, queries), offsetof(Attention, heads),
    offsetof(Attention, d_k), offsetof(Attention, d_v), offsetof(Attention, query_stride),
    offsetof(Attention, row_stride), offsetof(Attention, group), offsetof(Attention, positions),
    offsetof(Attention, group_stride), offsetof(Attention, position_stride),
    offsetof(Attention, keys), offsetof(Attention, row_numbers), offsetof(Attention, lengths),
    offsetof(Attention, scale)};

EXPORT(attend_rows)
