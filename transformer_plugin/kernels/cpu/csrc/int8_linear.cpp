// Int8Linear of modules/int8_linear.py: rounding to 8 bits, and the whole map for a few rows.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "parallel.h"
#include "vectors.h"

namespace {

typedef uint8_t Bytes __attribute__((vector_size(kLanes)));

constexpr float kLevels = 127, kSmallest = 1e-30f;
constexpr int64_t kColumns = 128;                 // of a product that a thread makes at once
constexpr int64_t kPerThread = int64_t(1) << 20;  // multiplications that are worth a thread

Floats rounded(Floats v) {  // to nearest, ties to even
#ifdef __AVX512F__
    return Floats(_mm512_roundscale_ps(__m512(v), 0));
#else
    for (int i = 0; i < kLanes; ++i) v[i] = std::rint(v[i]);
    return v;
#endif
}

// `size` is a multiple of the vector width.
template <class Number>
void quantise(const Number* x, int64_t size, uint8_t* steps, float* scale, int32_t* zero_point) {
    Floats high{}, low{}, faults{};  // low is negated
    for (int64_t i = 0; i < size; i += kLanes) {
        const Floats v = load(x + i);
        high = larger(v, high);
        low = larger(-v, low);
        faults += v - v;  // NaN for NaN and infinities
    }
    const float least = largest(low);
    *scale = std::max((largest(high) + least) / kLevels, kSmallest) + sum(faults);
    const float inverse = 1 / *scale, zero = std::nearbyint(least * inverse);
    *zero_point = int32_t(zero);
    for (int64_t i = 0; i < size; i += kLanes) {
        const Floats step = rounded(load(x + i) * inverse) + zero;
        const Floats kept = -larger(-larger(step, Floats{}), Floats{} - kLevels);
        // By way of 16 bits: GCC converts 32 bits to 8 one number at a time without AVX-512.
        const auto halves = __builtin_convertvector(__builtin_convertvector(kept, Ints), Halves);
        const Bytes bytes = __builtin_convertvector(halves, Bytes);
        std::memcpy(steps + i, &bytes, sizeof bytes);
    }
}

// Products of `rows` rows of x and two of the weight, in columns 0 and 1 of `out`. Compilers
// recognise the innermost loops as sums of products of 16-bit integers, for which processors have
// instructions.
template <int kRows>
void multiply(const int16_t* x, int64_t rows, int64_t depth, const int8_t* weight, int64_t width,
              int32_t* out) {
    for (; rows >= kRows; rows -= kRows, x += kRows * depth, out += kRows * width) {
        int32_t total[kRows][2] = {};
        for (int64_t k = 0; k < depth; ++k)
            for (int i = 0; i < kRows; ++i)
                for (int j = 0; j < 2; ++j)
                    total[i][j] += x[i * depth + k] * int16_t(weight[j * depth + k]);
        for (int i = 0; i < kRows; ++i)
            for (int j = 0; j < 2; ++j) out[i * width + j] = total[i][j];
    }
    if constexpr (kRows > 1) multiply<kRows / 2>(x, rows, depth, weight, width, out);
}

// x W^T + b, or its ReLU. `width` is even.
template <class Number>
void int8_linear(const Number* x, int64_t rows, int64_t depth, const int8_t* weight, int64_t width,
                 const float* scales, const float* bias, bool relu, Number* out, Parallel parallel,
                 int64_t threads) {
    std::vector<uint8_t> steps(rows * depth);
    float scale;
    int32_t zero_point;
    quantise(x, rows * depth, steps.data(), &scale, &zero_point);
    std::vector<int16_t> inputs(rows * depth);
    for (size_t i = 0; i < steps.size(); ++i) inputs[i] = int16_t(steps[i] - zero_point);
    std::vector<int32_t> products(rows * width);
    const auto block = [&](int64_t number) {
        const int64_t first = number * kColumns, last = std::min(first + kColumns, width);
        for (int64_t column = first; column < last; column += 2)
            multiply<4>(inputs.data(), rows, depth, weight + column * depth, width,
                        products.data() + column);
        for (int64_t row = 0; row < rows; ++row)
            for (int64_t column = first; column < last; ++column) {
                const int64_t i = row * width + column;
                const float y = products[i] * (scale * scales[column]) + (bias ? bias[column] : 0);
                store(relu && y < 0 ? 0 : y, out + i);
            }
    };
    threads = std::min(threads, 1 + rows * depth * width / kPerThread);
    for_each((width + kColumns - 1) / kColumns, parallel, threads, block);
}

}  // namespace

EXPORT(quantise)
EXPORT(int8_linear)
