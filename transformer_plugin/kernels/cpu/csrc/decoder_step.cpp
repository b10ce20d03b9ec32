// One position of some hypotheses through all layers of a post-norm decoder (section 3.1), in one
// call: what lies between the matrix products is done while it is in the cache, and other threads
// of Python go on meanwhile. Plain C functions for decoder_step.py.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "cached_attention.h"
#include "layer_norm.h"
#include "vectors.h"

namespace {

// BLAS' product of matrices that are stored column by column: sgemm, or gemm_bf16bf16f32.
template <class Number>
using Product = void (*)(const char* transpose_a, const char* transpose_b, const int* m,
                         const int* n, const int* k, const float* alpha, const Number* a,
                         const int* a_stride, const Number* b, const int* b_stride,
                         const float* beta, float* c, const int* c_stride);

// MKL's sgemm_compute: the first matrix is a packed one.
using PackedProduct = void (*)(const char* packed_a, const char* transpose_b, const int* m,
                               const int* n, const int* k, const float* a, const int* a_stride,
                               const float* b, const int* b_stride, const float* beta, float* c,
                               const int* c_stride);

template <class Number>
struct Map {  // a linear one, [out, in] and [out]; or the gain and bias of a norm
    const Number *weight, *bias;
};

template <class Number>
struct Layer {  // as decoder_step.py's
    Map<Number> query_key_value, output, norm;
    Map<Number> memory_query, memory_output, memory_norm;
    Map<Number> inner, outer, feed_forward_norm;
    const Number* memory;  // keys and values of the encoder's output
    Number* const* rows;   // queries, keys and values of each step; the last one's are made here
};

template <class Number>
struct Step {  // as decoder_step.py's
    int64_t sentences, width, d_model, d_ff, heads, d_k, d_v, layers, steps, ancestor_stride;
    float scale, epsilon;
    Product<Number> product;
    PackedProduct packed_product;  // null: no weight is packed
    const int32_t* ancestors;         // see attend_past
    const int64_t *starts, *lengths;  // see attend_memory
};

constexpr int64_t kRows = 256;  // that go through a layer together

// Some hypotheses on their way through a layer.
template <class Number>
class Block {
   public:
    Block(const Step<Number>& step, int64_t first_sentence, int64_t sentences)
        : s_(step),
          sentence_(first_sentence),
          first_(first_sentence * step.width),
          rows_(sentences * step.width) {
        const int64_t numbers = widest() + heads(s_.d_v) + heads(s_.d_k) + s_.d_ff;
        thread_local std::vector<float> room;
        if (int64_t(room.size()) < rows_ * numbers) room.resize(rows_ * numbers);
        product_ = room.data();
        context_ = reinterpret_cast<Number*>(product_ + rows_ * widest());
        queries_ = context_ + rows_ * heads(s_.d_v);
        hidden_ = queries_ + rows_ * heads(s_.d_k);
    }

    // x: the layer's input, [rows, d_model], then its output; `rounded` is the same as Number.
    void pass(const Layer<Number>& layer, float* x, Number* rounded) {
        x += first_ * s_.d_model, rounded += first_ * s_.d_model;
        const int64_t width = heads(2 * s_.d_k + s_.d_v);
        Number* const made = layer.rows[s_.steps - 1] + first_ * width;
        project<false>(rounded, layer.query_key_value, s_.d_model, width, made);
        attend_past(attention(width, width), made, context_, s_.steps, layer.rows,
                    s_.ancestors + first_ * s_.ancestor_stride, s_.ancestor_stride,
                    heads(s_.d_k), heads(2 * s_.d_k));
        add(context_, layer.output, heads(s_.d_v), layer.norm, x, rounded);

        project<false>(rounded, layer.memory_query, s_.d_model, heads(s_.d_k), queries_);
        attend_memory(attention(heads(s_.d_k), heads(s_.d_k + s_.d_v)), queries_, context_,
                      s_.width, layer.memory, s_.starts + sentence_, s_.lengths + sentence_);
        add(context_, layer.memory_output, heads(s_.d_v), layer.memory_norm, x, rounded);

        project<true>(rounded, layer.inner, s_.d_model, s_.d_ff, hidden_);
        add(hidden_, layer.outer, s_.d_ff, layer.feed_forward_norm, x, rounded);
    }

   private:
    int64_t heads(int64_t width) const { return s_.heads * width; }

    int64_t widest() const {  // of a product
        return std::max({heads(2 * s_.d_k + s_.d_v), s_.d_model, s_.d_ff});
    }

    Attention attention(int64_t query_stride, int64_t row_stride) const {
        return {rows_, s_.heads, s_.d_k, s_.d_v, query_stride, row_stride, heads(s_.d_v), s_.scale};
    }

    // x W^T of section 3.3's equation (2), without bias.
    void multiply(const Number* x, const Number* weight, int in, int out, float* y) const {
        const float one = 1, zero = 0;
        const int rows = int(rows_);
        if constexpr (std::is_same_v<Number, float>)
            if (s_.packed_product)
                return s_.packed_product("P", "N", &out, &rows, &in, weight, &in, x, &in, &zero, y,
                                         &out);
        s_.product("T", "N", &out, &rows, &in, &one, weight, &in, x, &in, &zero, y, &out);
    }

    // x W^T + b, or its ReLU.
    template <bool kRelu>
    void project(const Number* x, const Map<Number>& map, int in, int out, Number* y) const {
        float* product = product_;
        if constexpr (std::is_same_v<Number, float>) product = y;
        multiply(x, map.weight, in, out, product);
        for (int64_t r = 0; r < rows_; ++r)
            for (int64_t i = 0; i < out; i += kLanes) {
                const Floats v = load(product + r * out + i) + load(map.bias + i);
                if constexpr (kRelu)
                    store(v < 0.0f ? Floats{} : v, y + r * out + i);  // what is no number stays so
                else
                    store(v, y + r * out + i);
            }
    }

    // LayerNorm(x + y W^T + b) in place of x (section 5.4).
    void add(const Number* y, const Map<Number>& map, int in, const Map<Number>& norm, float* x,
             Number* rounded) const {
        const int64_t width = s_.d_model;
        multiply(y, map.weight, in, int(width), product_);
        for (int64_t r = 0; r < rows_; ++r, x += width, rounded += width) {
            Floats sums{};
            for (int64_t i = 0; i < width; i += kLanes) {
                const Floats v = load(x + i) + load(product_ + r * width + i) + load(map.bias + i);
                store(v, x + i);
                sums += v;
            }
            const Moments found = moments(x, width, sums, s_.epsilon);
            for (int64_t i = 0; i < width; i += kLanes) {
                const Floats v = normalised(load(x + i), found, norm.weight + i, norm.bias + i);
                store(v, x + i);
                if constexpr (!std::is_same_v<Number, float>) store(v, rounded + i);
            }
        }
    }

    const Step<Number>& s_;
    const int64_t sentence_, first_, rows_;
    float* product_;  // [rows, width of a product]
    Number *context_, *queries_, *hidden_;
};

template <class Number>
void step(const Step<Number>& s, const Layer<Number>* layers, float* x, Number* rounded) {
    const int64_t sentences = std::max<int64_t>(1, kRows / s.width);
    for (int64_t i = 0; i < s.layers; ++i)  // a layer's weights stay in the cache, too
        for (int64_t b = 0; b < s.sentences; b += sentences)
            Block<Number>(s, b, std::min(sentences, s.sentences - b)).pass(layers[i], x, rounded);
}

}  // namespace

// x: float32, [sentences * width, d_model]; rounded: the same numbers in the type of the weights,
// which for float32 is x itself. Both hold the last layer's output afterwards.
extern "C" void decoder_step_float32(const Step<float>* s, const Layer<float>* layers, float* x,
                                     float* rounded) {
    step(*s, layers, x, rounded);
}

extern "C" void decoder_step_bfloat16(const Step<BFloat16>* s, const Layer<BFloat16>* layers,
                                      float* x, BFloat16* rounded) {
    step(*s, layers, x, rounded);
}
