// Sixteen numbers at a time, in float32 and in bfloat16: what the kernels are made of.

#pragma once

#include <cstdint>
#include <cstring>
#include <limits>

#ifdef __AVX512F__
#include <immintrin.h>
#endif

namespace {

constexpr int kLanes = 16;
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// Vectors of the compiler: one instruction with AVX-512, a few elsewhere.
typedef float Floats __attribute__((vector_size(4 * kLanes)));
typedef int32_t Ints __attribute__((vector_size(4 * kLanes)));
typedef uint16_t Halves __attribute__((vector_size(2 * kLanes)));

struct BFloat16 {
    uint16_t bits;
};

Floats load(const float* x) {
    Floats v;
    std::memcpy(&v, x, sizeof v);
    return v;
}

Floats load(const BFloat16* x) {  // the upper half of a float32
    Halves bits;
    std::memcpy(&bits, x, sizeof bits);
    const Ints wide = __builtin_convertvector(bits, Ints) << 16;
    Floats v;
    std::memcpy(&v, &wide, sizeof v);
    return v;
}

// The last, incomplete vector of a row; `rest` elements exist, the others are `filler`.
template <class Number>
Floats load(const Number* x, int rest, float filler) {
    Number part[kLanes] = {};
    std::memcpy(part, x, rest * sizeof(Number));
    Floats v = load(part);
    for (int i = rest; i < kLanes; ++i) v[i] = filler;
    return v;
}

void store(Floats v, float* x) { std::memcpy(x, &v, sizeof v); }

void store(Floats v, BFloat16* x) {  // rounded to nearest, ties to even
#ifdef __AVX512BF16__
    __m512 wide;
    std::memcpy(&wide, &v, sizeof v);
    const __m256bh upper = _mm512_cvtneps_pbh(wide);
#else
    Ints bits;
    std::memcpy(&bits, &v, sizeof v);
    bits += 0x7fff + ((bits >> 16) & 1);
    const Halves upper = __builtin_convertvector(bits >> 16, Halves);
#endif
    std::memcpy(x, &upper, sizeof upper);
}

Floats larger(Floats a, Floats b) { return a > b ? a : b; }

// What is left when the lower and the upper half of a vector are put together, and so on.
#ifdef __AVX512F__
float sum(Floats v) {
    __m512 x;
    std::memcpy(&x, &v, sizeof v);
    return _mm512_reduce_add_ps(x);
}

float largest(Floats v) {
    __m512 x;
    std::memcpy(&x, &v, sizeof v);
    return _mm512_reduce_max_ps(x);
}
#else
template <class Put>
float reduced(Floats v, Put put) {
    float x[kLanes];
    store(v, x);
    for (int half = kLanes / 2; half > 0; half /= 2)
        for (int i = 0; i < half; ++i) x[i] = put(x[i], x[half + i]);
    return x[0];
}

float sum(Floats v) {
    return reduced(v, [](float a, float b) { return a + b; });
}

float largest(Floats v) {
    return reduced(v, [](float a, float b) { return a > b ? a : b; });
}
#endif

// e^x for x <= 0, to two units in the last place; 0 below -87. As Cephes' expf: 2^n times a
// polynomial of the rest.
Floats exponential(Floats x) {
    const Ints lost = x < -87.0f;
    x = lost ? Floats{} - 87.0f : x;  // what is not a number stays so
    const Ints n = __builtin_convertvector(x * 1.44269504f - 0.5f, Ints);  // towards zero
    const Floats whole = __builtin_convertvector(n, Floats);
    const Floats r = x - whole * 0.693359375f + whole * 2.12194440e-4f;
    Floats p = r * 1.9875691500e-4f + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    const Ints power = (n + 127) << 23;
    Floats scale;
    std::memcpy(&scale, &power, sizeof scale);
    return lost ? Floats{} : p * scale;
}

}  // namespace
