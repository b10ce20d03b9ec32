// Attention in one decoding step, with one query for each hypothesis, over keys and values at
// arbitrary addresses: those of its own past, and those of the encoder's output.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "attention_step.h"
#include "vectors.h"

namespace {

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
//   keys(t): address for the first head, at `count` positions; the values follow the keys.
//   weights: buffer for count + 4 elements, rounded up to whole vectors.
template <class Number, class Keys>
void attend(const Attention& a, const Number* q, int64_t count, Keys keys, float* weights,
            Number* out) {
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
        const auto value = [&](int64_t t) { return keys(t) + a.heads * a.d_k + h * a.d_v + i; };
        for (; i + kVectors * kLanes <= a.d_v; i += kVectors * kLanes)
            average<kVectors>(weights, count, value, out + i);
        for (; i < a.d_v; i += kLanes) average<1>(weights, count, value, out + i);
    }
}

// Attention of all queries, with outputs of all heads in a row.
template <class Number>
void attend_rows(const Attention& a, const Number* q, Number* out) {
    const auto keys = reinterpret_cast<const Number* const*>(a.keys);
    std::vector<float> weights;
    for (int64_t r = 0; r < a.queries; ++r) {
        const int64_t g = r / a.group, count = a.lengths ? a.lengths[g] : a.positions;
        const auto row = [&](int64_t t) {
            const int64_t i = g * a.group_stride + t * a.position_stride;
            return keys[t] + a.row_numbers[i] * a.row_stride;
        };
        weights.resize(in_lanes(count + 4));
        attend(a, q + r * a.query_stride, count, row, weights.data(), out + r * a.heads * a.d_v);
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
