// LayerNorm(x + Dropout(y)) and its gradient, each in one pass over the rows. What dropout keeps is
// not stored: it is drawn again on the way back. So need the result not be: it can be normalised
// again from the sum.
// Plain C functions for residual.py; tensors are given by their first element, their rows
// lie one behind another.

#include <cstdint>

#include "layer_norm.h"
#include "parallel.h"
#include "random.h"
#include "vectors.h"

namespace {

struct Residual {  // as residual.py's
    int64_t rows, width;
    uint64_t seed;
    int64_t dropped;  // of 65,536 numbers
    float scale;      // of what is kept
    float epsilon;
};

constexpr int64_t kRows = 64;  // of a task

// What a row's dropout multiplies its numbers with, a vector after the other.
class Kept {
   public:
    Kept(const Residual& r, int64_t row)
        : r_(r), block_(row * ((r.width + Draws::kNumbers - 1) / Draws::kNumbers)) {}

    Floats next() {
        if (r_.dropped == 0) return Floats{} + r_.scale;
        if (used_ == Draws::kVectors) {
            draws_ = Draws(r_.seed, block_++);
            used_ = 0;
        }
        return draws_.vector(used_++) < int32_t(r_.dropped) ? Floats{} : Floats{} + r_.scale;
    }

   private:
    const Residual& r_;
    uint64_t block_;
    Draws draws_;
    int used_ = Draws::kVectors;
};

template <class Number>
void normalise(const Residual& r, const Number* total, const Moments& of_row, const Number* gain,
               const Number* bias, Number* out) {
    for (int64_t i = 0; i < r.width; i += kLanes)
        store(normalised(load(total + i), of_row, gain + i, bias + i), out + i);
}

template <class Number>
void forward(const Residual& r, int64_t row, const Number* x, const Number* y, const Number* gain,
             const Number* bias, Number* total, float* mean, float* deviation, Number* out) {
    x += row * r.width, y += row * r.width, total += row * r.width, out += row * r.width;
    Kept kept(r, row);
    Floats sums{};
    for (int64_t i = 0; i < r.width; i += kLanes) {
        store(load(x + i) + load(y + i) * kept.next(), total + i);
        sums += load(total + i);  // as it is rounded
    }
    const Moments found = moments(total, r.width, sums, r.epsilon);
    mean[row] = found.mean;
    deviation[row] = found.inverse;
    normalise(r, total, found, gain, bias, out);
}

// With n the normalised sum, g the gradient times the gain and means over the row, the gradient of
// the sum is (g - mean(g) - n mean(g n)) / deviation. Those of gain and bias are added to `shares`.
template <class Number>
void backward(const Residual& r, int64_t row, const Number* gradient, const Number* total,
              const float* mean, const float* deviation, const Number* gain, Number* x_gradient,
              Number* y_gradient, float* shares) {
    const int64_t start = row * r.width;
    gradient += start, total += start, x_gradient += start;
    const float middle = mean[row], inverse = deviation[row];
    float* const bias_share = shares + r.width;
    Floats sums{}, products{};
    for (int64_t i = 0; i < r.width; i += kLanes) {
        const Floats given = load(gradient + i), n = (load(total + i) - middle) * inverse;
        const Floats g = given * load(gain + i);
        sums += g;
        products += g * n;
        store(load(shares + i) + given * n, shares + i);
        store(load(bias_share + i) + given, bias_share + i);
    }
    const float mean_g = sum(sums) / r.width, mean_gn = sum(products) / r.width;
    Kept kept(r, row);
    for (int64_t i = 0; i < r.width; i += kLanes) {
        const Floats n = (load(total + i) - middle) * inverse;
        const Floats g = load(gradient + i) * load(gain + i);
        const Floats found = (g - mean_g - n * mean_gn) * inverse;
        store(found, x_gradient + i);
        if (y_gradient) store(found * kept.next(), y_gradient + start + i);
    }
}

}  // namespace

// Functions for each type of number.
#define EXPORT(Number, suffix)                                                                   \
    extern "C" void residual_norm_##suffix(const Residual* r, Parallel parallel,                 \
                                           int64_t threads, const Number* x, const Number* y,    \
                                           const Number* gain, const Number* bias,               \
                                           Number* total, float* mean, float* deviation,         \
                                           Number* out) {                                        \
        for_each_row(r->rows, kRows, parallel, threads, [=](int64_t row) {                       \
            forward(*r, row, x, y, gain, bias, total, mean, deviation, out);                     \
        });                                                                                      \
    }                                                                                            \
    extern "C" void normalise_##suffix(const Residual* r, Parallel parallel, int64_t threads,    \
                                       const Number* total, const float* mean,                   \
                                       const float* deviation, const Number* gain,               \
                                       const Number* bias, Number* out) {                        \
        for_each_row(r->rows, kRows, parallel, threads, [=](int64_t row) {                       \
            const int64_t start = row * r->width;                                                \
            normalise(*r, total + start, {mean[row], deviation[row]}, gain, bias, out + start);  \
        });                                                                                      \
    }                                                                                            \
    extern "C" void residual_norm_back_##suffix(                                                 \
        const Residual* r, Parallel parallel, int64_t threads, const Number* gradient,           \
        const Number* total, const float* mean, const float* deviation, const Number* gain,      \
        Number* x_gradient, Number* y_gradient, float* shares) {                                 \
        for_each_row(r->rows, kRows, parallel, threads, [=](int64_t row) {                       \
            backward(*r, row, gradient, total, mean, deviation, gain, x_gradient, y_gradient,    \
                     shares + row / kRows * 2 * r->width);                                       \
        });                                                                                      \
    }

EXPORT(float, float32)
EXPORT(BFloat16, bfloat16)
