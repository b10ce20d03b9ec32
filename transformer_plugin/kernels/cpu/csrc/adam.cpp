// Adam (section 5.3 of the paper) in one pass over a weight, its gradient and its moments.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "parallel.h"
#include "vectors.h"

namespace {

struct Adam {  // as in adam.py
    int64_t size;
    float factor;  // of the gradient
    float beta1, rest1, beta2, rest2;  // rest = 1 - beta, rounded once
    float step_size, eps;
    float kept;  // of a weight by weight decay
};

constexpr int64_t kBlock = 1 << 13;  // elements of a task

void assign(float x, float& to) { to = x; }

void assign(float x, BFloat16& to) {  // rounded to nearest, ties to even
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    to.bits = x == x ? uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16) : 0x7fc0;
}

template <class Number>
void update(const Adam& a, int64_t start, int64_t end, const Number* gradient, float* weight,
            float* mean, float* square, Number* rounded) {
#pragma GCC ivdep  // so that compilers make vectors
    for (int64_t i = start; i < end; ++i) {
        const float g = number(gradient[i]) * a.factor;
        mean[i] = mean[i] * a.beta1 + g * a.rest1;
        square[i] = square[i] * a.beta2 + g * g * a.rest2;
        weight[i] = weight[i] * a.kept - a.step_size * (mean[i] / (std::sqrt(square[i]) + a.eps));
    }
    if (!rounded) return;
#pragma GCC ivdep
    for (int64_t i = start; i < end; ++i) assign(weight[i], rounded[i]);
}

template <class Number>
void adam(const Adam& a, Parallel parallel, int64_t threads, const Number* gradient, float* weight,
          float* mean, float* square, Number* rounded) {
    for_each((a.size + kBlock - 1) / kBlock, parallel, threads, [&](int64_t block) {
        const int64_t start = block * kBlock;
        update(a, start, std::min(a.size, start + kBlock), gradient, weight, mean, square, rounded);
    });
}

}  // namespace

// Size and field offsets of Adam; a test compares them with Python's.
extern "C" const int64_t adam_layout[] = {
    sizeof(Adam),          offsetof(Adam, size),      offsetof(Adam, factor),
    offsetof(Adam, beta1), offsetof(Adam, rest1),     offsetof(Adam, beta2),
    offsetof(Adam, rest2), offsetof(Adam, step_size), offsetof(Adam, eps),
    offsetof(Adam, kept)};

EXPORT(adam)
