// Attention over the consecutive rows of whole sentences, and its gradient: without padding or
// masks; the backward pass needs only queries, keys and values.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "matrix.h"
#include "parallel.h"
#include "vectors.h"

namespace {

// Copies rows of a tensor to consecutive float32 rows, times `factor`. Prefetches the rows of the
// next head, to their right.
template <class Number>
void read(const Number* from, int64_t row, int64_t rows, int64_t width, float* to,
          float factor = 1) {
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < width; j += kLanes) {
            __builtin_prefetch(from + i * row + width + j);
            store(load(from + i * row + j) * factor, to + i * width + j);
        }
}

template <class Number>
void write(const float* from, int64_t rows, int64_t width, Number* to, int64_t row,
           float factor = 1) {
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < width; j += kLanes)
            store(load(from + i * width + j) * factor, to + i * row + j);
}

// Writes the columns of `from`, [rows, width], as rows of `to_row` elements, padded with zeros.
void transpose(const float* from, int64_t rows, int64_t width, float* to, int64_t to_row) {
    for (int64_t j = 0; j < width; ++j) {
        for (int64_t i = 0; i < rows; ++i) to[j * to_row + i] = from[i * width + j];
        for (int64_t i = rows; i < to_row; ++i) to[j * to_row + i] = 0;
    }
}

struct Sentences {  // as in attention.py
    int64_t count, heads, d_k, d_v;
    int64_t query_row, key_row, out_row;  // elements from one row to the next
    const int32_t* starts;                // first query row of each sentence, and the end
    const int32_t* key_starts;
    int64_t causal;
    float scale;
};

constexpr int64_t kBlock = 64;  // queries of a sentence at a time

// Buffers of one thread; the memory is reused until the thread ends. Whole vectors, so that they are
// aligned: with AVX2, attention takes up to 1.15 times as long without.
struct Scratch {
    float* next;

    explicit Scratch(int64_t numbers) {
        thread_local std::vector<Floats> room;
        if (int64_t(room.size()) < numbers / kLanes) room.resize(numbers / kLanes);
        next = reinterpret_cast<float*>(room.data());
    }
    float* take(int64_t numbers) { return (next += numbers) - numbers; }
};

// One head of one sentence: the offsets of its elements, and the numbers of queries and keys.
struct Head {
    int64_t q, k, v, out;  // offsets from the first element of the tensor
    int64_t queries, keys;

    Head(const Sentences& s, int64_t task) {
        const int64_t b = task / s.heads, h = task % s.heads;
        q = s.starts[b] * s.query_row + h * s.d_k;
        k = s.key_starts[b] * s.key_row + h * s.d_k;
        v = s.key_starts[b] * s.key_row + h * s.d_v;
        out = s.starts[b] * s.out_row + h * s.d_v;
        queries = s.starts[b + 1] - s.starts[b];
        keys = s.key_starts[b + 1] - s.key_starts[b];
    }
};

// softmax(Q K^T) of the queries `first` to `first + queries`, over the keys that any of them sees.
void weights(const Sentences& s, const float* q, int64_t first, int64_t queries,
             const float* keys_t, int64_t keys, int64_t row, float* p) {
    multiply({q, s.d_k, 1}, queries, s.d_k, keys_t, row, in_lanes(keys), p, row);
    for (int64_t i = 0; i < queries; ++i)
        softmax(p + i * row, s.causal ? std::min(keys, first + i + 1) : keys, in_lanes(keys));
}

// softmax(scale Q K^T) V, equation (1), in one head of one sentence; zeros without keys.
template <class Number>
void attend_head(const Sentences& s, int64_t task, const Number* q, const Number* k,
                 const Number* v, Number* out) {
    const Head head(s, task);
    const int64_t row = in_lanes(head.keys), block = std::min(kBlock, head.queries);
    Scratch scratch(2 * row * s.d_k + row * s.d_v + block * (s.d_k + s.d_v + row));
    float* const keys = scratch.take(row * s.d_k);
    float* const keys_t = scratch.take(row * s.d_k);
    float* const values = scratch.take(row * s.d_v);
    float* const asked = scratch.take(block * s.d_k);
    float* const p = scratch.take(block * row);
    float* const context = scratch.take(block * s.d_v);
    read(k + head.k, s.key_row, head.keys, s.d_k, keys);
    transpose(keys, head.keys, s.d_k, keys_t, row);
    read(v + head.v, s.key_row, head.keys, s.d_v, values);
    for (int64_t first = 0; first < head.queries; first += block) {
        const int64_t count = std::min(block, head.queries - first);
        const int64_t seen = s.causal ? std::min(head.keys, first + count) : head.keys;
        read(q + head.q + first * s.query_row, s.query_row, count, s.d_k, asked, s.scale);
        weights(s, asked, first, count, keys_t, seen, row, p);
        multiply({p, row, 1}, count, seen, values, s.d_v, s.d_v, context, s.d_v);
        write(context, count, s.d_v, out + head.out + first * s.out_row, s.out_row);
    }
}

// The gradients of Q, K and V in one head of one sentence, from the gradient G of the output. With
// the weights P, which are recomputed: dV = P^T G, dP = G V^T, dS = P (dP - the sum of P dP over the
// keys), dQ = scale dS K, dK = scale dS^T Q.
template <class Number>
void attend_head_back(const Sentences& s, int64_t task, const Number* q, const Number* k,
                      const Number* v, const Number* gradient, Number* q_gradient,
                      Number* k_gradient, Number* v_gradient) {
    const Head head(s, task);
    const int64_t row = in_lanes(head.keys), block = std::min(kBlock, head.queries);
    Scratch scratch(3 * row * s.d_k + 2 * row * s.d_v + block * (2 * s.d_k + s.d_v + 2 * row));
    float* const keys = scratch.take(row * s.d_k);
    float* const keys_t = scratch.take(row * s.d_k);
    float* const values_t = scratch.take(row * s.d_v);
    float* const asked = scratch.take(block * s.d_k);
    float* const g = scratch.take(block * s.d_v);
    float* const p = scratch.take(block * row);
    float* const ds = scratch.take(block * row);
    float* const dq = scratch.take(block * s.d_k);
    float* const dk = scratch.take(row * s.d_k);
    float* const dv = scratch.take(row * s.d_v);
    read(v + head.v, s.key_row, head.keys, s.d_v, dv);  // dv is not in use yet
    transpose(dv, head.keys, s.d_v, values_t, row);
    read(k + head.k, s.key_row, head.keys, s.d_k, keys);
    transpose(keys, head.keys, s.d_k, keys_t, row);
    std::fill_n(dk, row * s.d_k, 0.0f);
    std::fill_n(dv, row * s.d_v, 0.0f);
    for (int64_t first = 0; first < head.queries; first += block) {
        const int64_t count = std::min(block, head.queries - first);
        const int64_t seen = s.causal ? std::min(head.keys, first + count) : head.keys;
        read(q + head.q + first * s.query_row, s.query_row, count, s.d_k, asked, s.scale);
        read(gradient + head.out + first * s.out_row, s.out_row, count, s.d_v, g);
        weights(s, asked, first, count, keys_t, seen, row, p);
        multiply({p, 1, row}, seen, count, g, s.d_v, s.d_v, dv, s.d_v, true);
        multiply({g, s.d_v, 1}, count, s.d_v, values_t, row, in_lanes(seen), ds, row);
        for (int64_t i = 0; i < count; ++i) {
            Floats total{};
            for (int64_t j = i * row; j < i * row + seen; j += kLanes)
                total += load(p + j) * load(ds + j);
            const float mean = sum(total);
            for (int64_t j = i * row; j < i * row + seen; j += kLanes)
                store(load(p + j) * (load(ds + j) - mean), ds + j);
        }
        multiply({ds, row, 1}, count, seen, keys, s.d_k, s.d_k, dq, s.d_k);
        multiply({ds, 1, row}, seen, count, asked, s.d_k, s.d_k, dk, s.d_k, true);
        write(dq, count, s.d_k, q_gradient + head.q + first * s.query_row, s.query_row, s.scale);
    }
    write(dk, head.keys, s.d_k, k_gradient + head.k, s.key_row);
    write(dv, head.keys, s.d_v, v_gradient + head.v, s.key_row);
}

template <class Number>
void attend(const Sentences& s, Parallel parallel, int64_t threads, const Number* q,
            const Number* k, const Number* v, Number* out) {
    for_each(s.count * s.heads, parallel, threads,
             [&](int64_t task) { attend_head(s, task, q, k, v, out); });
}

template <class Number>
void attend_back(const Sentences& s, Parallel parallel, int64_t threads, const Number* q,
                 const Number* k, const Number* v, const Number* gradient, Number* q_gradient,
                 Number* k_gradient, Number* v_gradient) {
    for_each(s.count * s.heads, parallel, threads, [&](int64_t task) {
        attend_head_back(s, task, q, k, v, gradient, q_gradient, k_gradient, v_gradient);
    });
}

}  // namespace

// Size and field offsets of Sentences; a test compares them with Python's.
extern "C" const int64_t sentences_layout[] = {
    sizeof(Sentences), offsetof(Sentences, count), offsetof(Sentences, heads), offsetof(Sentences,
    d_k), offsetof(Sentences, d_v), offsetof(Sentences, query_row), offsetof(Sentences, key_row),
    offsetof(Sentences, out_row), offsetof(Sentences, starts), offsetof(Sentences, key_starts),
    offsetof(Sentences, causal), offsetof(Sentences, scale)};

EXPORT(attend)
EXPORT(attend_back)
