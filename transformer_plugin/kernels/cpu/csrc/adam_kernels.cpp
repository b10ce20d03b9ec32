// Adam (section 5.3) of float32 weights from gradients in bfloat16, in one pass over all of them; the
// weights' roundings to bfloat16 follow.
// Plain C functions for adam.py; tensors are given by their first element.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "parallel.h"
#include "vectors.h"

namespace {

struct Adam {          // as adam.py's
    float factor;      // of the gradient
    float beta1, beta2;
    float rate;        // lr / (1 - beta1^t)
    float correction;  // 1 / sqrt(1 - beta2^t)
    float epsilon;     // added to the corrected root
    float kept;        // of a weight: 1 - lr * weight decay
};

constexpr int64_t kPiece = 1 << 13;  // numbers of a task

Floats root(Floats v) {
    float x[kLanes];
    store(v, x);
    for (float& number : x) number = std::sqrt(number);
    return load(x);
}

void update(const Adam& a, const BFloat16* gradient, float* weight, BFloat16* rounded, float* mean,
            float* square) {
    const Floats g = load(gradient) * a.factor;
    const Floats m = load(mean) + (g - load(mean)) * (1 - a.beta1);
    const Floats v = load(square) * a.beta2 + g * g * (1 - a.beta2);
    const Floats w = load(weight) * a.kept - a.rate * m / (root(v) * a.correction + a.epsilon);
    store(m, mean), store(v, square), store(w, weight), store(w, rounded);
}

// The numbers behind the last whole vector, in one of their own.
void update_last(const Adam& a, int64_t count, const BFloat16* gradient, float* weight,
                 BFloat16* rounded, float* mean, float* square) {
    BFloat16 g[kLanes] = {}, r[kLanes] = {};
    float w[kLanes] = {}, m[kLanes] = {}, v[kLanes] = {};
    const auto copy = [count](auto* to, const auto* from) {
        std::memcpy(to, from, count * sizeof *to);
    };
    copy(g, gradient), copy(w, weight), copy(m, mean), copy(v, square);
    update(a, g, w, r, m, v);
    copy(rounded, r), copy(weight, w), copy(mean, m), copy(square, v);
}

}  // namespace

extern "C" void adam_update(const Adam* a, Parallel parallel, int64_t threads, int64_t count,
                            const BFloat16* gradient, float* weight, BFloat16* rounded, float* mean,
                            float* square) {
    for_each((count + kPiece - 1) / kPiece, parallel, threads, [=](int64_t task) {
        const int64_t end = std::min(count, (task + 1) * kPiece);
        int64_t i = task * kPiece;
        for (; i + kLanes <= end; i += kLanes)
            update(*a, gradient + i, weight + i, rounded + i, mean + i, square + i);
        if (i < end)
            update_last(*a, end - i, gradient + i, weight + i, rounded + i, mean + i,
                        square + i);
    });
}

// The sums of the squares of `count` numbers, one a piece.
extern "C" void square_sums(Parallel parallel, int64_t threads, int64_t count,
                            const BFloat16* numbers, float* sums) {
    for_each((count + kPiece - 1) / kPiece, parallel, threads, [=](int64_t task) {
        const int64_t end = std::min(count, (task + 1) * kPiece);
        int64_t i = task * kPiece;
        Floats total{};
        for (; i + kLanes <= end; i += kLanes) total += load(numbers + i) * load(numbers + i);
        if (i < end) {
            const Floats rest = load(numbers + i, int(end - i), 0);
            total += rest * rest;
        }
        sums[task] = sum(total);
    });
}
