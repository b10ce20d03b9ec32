// Attention with one query a hypothesis over keys and values that lie anywhere: over the rows of its
// own past, and over those of the encoder's output.

#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "vectors.h"

namespace {

constexpr int kTogether = 4;  // queries; what they share is read once

struct Attention {  // as decoder_cache.py's
    int64_t queries, heads, d_k, d_v, query_stride, row_stride, out_stride;
    float scale;
};

// Room for kTogether queries of a head, and their scores.
class Room {
   public:
    Room(int64_t keys, int64_t d_k)
        : keys_(in_lanes(keys)), d_k_(d_k), numbers_(kTogether * (keys_ + d_k)) {}

    float* scores(int j) { return numbers_.data() + j * keys_; }
    float* query(int j) { return numbers_.data() + kTogether * keys_ + j * d_k_; }

   private:
    int64_t keys_, d_k_;
    std::vector<float> numbers_;
};

// Has numbers that are read soon brought near.
template <class Number>
void ask_for(const Number* x, int64_t count) {
    for (int64_t i = 0; i < count; i += 64 / sizeof(Number)) __builtin_prefetch(x + i);
}

void sums(const Floats (&v)[1], float* out) { out[0] = sum(v[0]); }

// The numbers i to i + kVectors * kLanes of the weighted values, in registers.
template <int kQueries, int kVectors, class Number, class Value>
void average(int count, Value value, int64_t i, Room& room, Number* out, int64_t out_stride) {
    const float* weights[kQueries];
    for (int j = 0; j < kQueries; ++j) weights[j] = room.scores(j);
    Floats context[kQueries][kVectors] = {};
    for (int t = 0; t < count; ++t)
        for (int j = 0; j < kQueries; ++j)
            for (int n = 0; n < kVectors; ++n)
                context[j][n] += weights[j][t] * load(value(t, j) + i + n * kLanes);
    for (int j = 0; j < kQueries; ++j)
        for (int n = 0; n < kVectors; ++n)
            store(context[j][n], out + j * out_stride + i + n * kLanes);
}

// softmax(scale q K^T) V of one or kTogether queries and one head, equation (1).
//   key(t, j), value(t, j): where the t-th of `count` keys and values of query j is; the next head's
//   key is on its right.
template <int kQueries, class Number, class Key, class Value>
void attend(const Attention& a, const Number* q, Number* out, int count, Key key, Value value,
            Room& room) {
    for (int j = 0; j < kQueries; ++j)
        for (int64_t i = 0; i < a.d_k; i += kLanes)
            store(load(q + j * a.query_stride + i) * a.scale, room.query(j) + i);
    for (int t = 0; t < count; ++t) {
        for (int j = 0; j < kQueries; ++j) {
            ask_for(value(t, j), a.d_v);
            ask_for(key(t, j) + a.d_k, a.d_k);
        }
        Floats products[kQueries] = {};
        for (int64_t i = 0; i < a.d_k; i += kLanes)
            for (int j = 0; j < kQueries; ++j)
                products[j] += load(room.query(j) + i) * load(key(t, j) + i);
        float scores[kQueries];
        sums(products, scores);
        for (int j = 0; j < kQueries; ++j) room.scores(j)[t] = scores[j];
    }
    for (int j = 0; j < kQueries; ++j) softmax(room.scores(j), count, in_lanes(count));
    constexpr int kVectors = kLanes / 4;  // with kTogether queries half of the registers
    int64_t i = 0;
    for (; i + kVectors * kLanes <= a.d_v; i += kVectors * kLanes)
        average<kQueries, kVectors>(count, value, i, room, out, a.out_stride);
    for (; i < a.d_v; i += kLanes)
        average<kQueries, 1>(count, value, i, room, out, a.out_stride);
}

// attend(r, size) for the queries `first` to `last`: from query r on, `size` of them, a constant.
template <class Attend>
void for_groups(int64_t first, int64_t last, Attend attend) {
    for (; first + kTogether <= last; first += kTogether)
        attend(first, std::integral_constant<int, kTogether>());
    for (; first < last; ++first) attend(first, std::integral_constant<int, 1>());
}

// Query r sees, of the rows made at step t, the one of number ancestors[r][t].
template <class Number>
void attend_past(const Attention& a, const Number* q, Number* out, int64_t steps,
                 const Number* const* rows, const int32_t* ancestors, int64_t ancestor_stride,
                 int64_t key_offset, int64_t value_offset) {
    Room room(steps, a.d_k);
    std::vector<const Number*> seen(kTogether * steps);
    for_groups(0, a.queries, [&](int64_t r, auto size) {
        for (int j = 0; j < size; ++j) {
            const int32_t* ancestor = ancestors + (r + j) * ancestor_stride;
            for (int64_t t = 0; t < steps; ++t)
                seen[t * size + j] = rows[t] + ancestor[t] * a.row_stride;
        }
        for (int64_t h = 0; h < a.heads; ++h) {
            const int64_t k = key_offset + h * a.d_k, v = value_offset + h * a.d_v;
            attend<size>(
                a, q + r * a.query_stride + h * a.d_k, out + r * a.out_stride + h * a.d_v, steps,
                [&](int t, int j) { return seen[t * size + j] + k; },
                [&](int t, int j) { return seen[t * size + j] + v; }, room);
        }
    });
}

// The `width` queries of sentence b see the rows starts[b] to starts[b] + lengths[b].
template <class Number>
void attend_memory(const Attention& a, const Number* q, Number* out, int64_t width,
                   const Number* rows, const int64_t* starts, const int64_t* lengths) {
    const int64_t sentences = a.queries / width;
    Room room(sentences ? *std::max_element(lengths, lengths + sentences) : 0, a.d_k);
    for (int64_t b = 0; b < sentences; ++b)
        for (int64_t h = 0; h < a.heads; ++h) {
            const Number* keys = rows + starts[b] * a.row_stride + h * a.d_k;
            const Number* values =
                rows + starts[b] * a.row_stride + a.heads * a.d_k + h * a.d_v;
            for_groups(b * width, (b + 1) * width, [&](int64_t r, auto size) {
                attend<size>(
                    a, q + r * a.query_stride + h * a.d_k, out + r * a.out_stride + h * a.d_v,
                    lengths[b], [&](int t, int) { return keys + t * a.row_stride; },
                    [&](int t, int) { return values + t * a.row_stride; }, room);
            });
        }
}

}  // namespace
