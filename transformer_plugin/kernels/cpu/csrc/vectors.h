// Vector operations in float32 and bfloat16, the building blocks of the kernels.

#pragma once

#include <cstdint>
#include <cstring>
#include <limits>

#ifdef __AVX__
#include <immintrin.h>
#endif

namespace {

#ifdef __AVX512F__  // register width: compilers generate poor code for longer vectors
constexpr int kLanes = 16;
#else
constexpr int kLanes = 8;
#endif
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

int64_t in_lanes(int64_t count) { return (count + kLanes - 1) / kLanes * kLanes; }

// Vector extensions of the compiler.
typedef float Floats __attribute__((vector_size(4 * kLanes)));
typedef float Eight __attribute__((vector_size(32)));
typedef float Four __attribute__((vector_size(16)));
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
#ifdef __AVX512F__  // two instructions; compilers generate many for the code below
    return Floats(_mm512_slli_epi32(_mm512_cvtepu16_epi32(__m256i(bits)), 16));
#else
    const Ints wide = __builtin_convertvector(bits, Ints) << 16;
    Floats v;
    std::memcpy(&v, &wide, sizeof v);
    return v;
#endif
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

// Elements i to i + kLanes of a row; minus infinity after its end.
template <class Number>
Floats vector(const Number* x, int64_t size, int64_t i) {
    return i + kLanes <= size ? load(x + i) : load(x + i, int(size - i), kMinusInfinity);
}

float number(float x) { return x; }

float number(BFloat16 x) {
    const uint32_t bits = uint32_t(x.bits) << 16;
    float found;
    std::memcpy(&found, &bits, sizeof found);
    return found;
}

void store(Floats v, float* x) { std::memcpy(x, &v, sizeof v); }

void store(Floats v, BFloat16* x) {  // rounded to nearest, ties to even
#ifdef __AVX512BF16__
    const __m256bh upper = _mm512_cvtneps_pbh(__m512(v));
#else
    Ints bits;
    std::memcpy(&bits, &v, sizeof v);
    bits += 0x7fff + ((bits >> 16) & 1);
    const Halves upper = __builtin_convertvector(bits >> 16, Halves);
#endif
    std::memcpy(x, &upper, sizeof upper);
}

void store(float number, float* x) { *x = number; }

void store(float number, BFloat16* x) {
    uint32_t bits;
    std::memcpy(&bits, &number, sizeof bits);
    x->bits = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}

// a > b ? a : b
Floats larger(Floats a, Floats b) { return a > b ? a : b; }

// The halves of a vector of 16, combined; a vector of 8 as it is.
template <class Put>
Eight eight(Floats v, Put put) {
#ifdef __AVX512F__  // compilers copy the halves to memory
    const __m512d all = __m512d(v);
    return put(Eight(_mm512_castpd512_pd256(all)), Eight(_mm512_extractf64x4_pd(all, 1)));
#else
    return v;
#endif
}

// Combines all elements by combining the lower and the upper half, and so on.
template <class Put>
float reduced(Floats v, Put put) {
    const Eight half = eight(v, put);
    Four quarters[2];
    std::memcpy(quarters, &half, sizeof half);
    const Four x = put(quarters[0], quarters[1]);
    return put(put(x[0], x[2]), put(x[1], x[3]));
}

float sum(Floats v) {
    return reduced(v, [](auto a, auto b) { return a + b; });
}

float largest(Floats v) {
    return reduced(v, [](auto a, auto b) { return a > b ? a : b; });
}

// A bit for each element of `v` that is larger than `bound`, from the lowest bit.
uint32_t above(Floats v, float bound) {
#ifdef __AVX512F__
    return _mm512_cmp_ps_mask(__m512(v), _mm512_set1_ps(bound), _CMP_GT_OQ);
#elif defined __AVX__
    return _mm256_movemask_ps(__m256(v > bound));
#else
    uint32_t bits = 0;
    for (int i = 0; i < kLanes; ++i) bits |= uint32_t(v[i] > bound) << i;
    return bits;
#endif
}

// The sums of four vectors.
void sums(const Floats (&v)[4], float* out) {
#ifdef __AVX__  // compilers generate many instructions for the loop
    const auto add = [](auto a, auto b) { return a + b; };
    const auto pairs = [&](int i) {
        return _mm256_hadd_ps(__m256(eight(v[i], add)), __m256(eight(v[i + 1], add)));
    };
    const __m256 all = _mm256_hadd_ps(pairs(0), pairs(2));
    _mm_storeu_ps(out, _mm256_castps256_ps128(all) + _mm256_extractf128_ps(all, 1));
#else
    for (int i = 0; i < 4; ++i) out[i] = sum(v[i]);
#endif
}

// e^x for x <= 0, to two units in the last place; 0 below -87. As in Cephes' expf: 2^n times a
// polynomial of the remainder.
Floats exponential(Floats x) {
    const Ints lost = x < -87.0f;  // denormals: processors take a hundred times as long
    x = larger(Floats{} - 87.0f, x);  // NaN stays NaN
    // At this size a float32 is a whole number, and its last bits are n + 127: 2^n's exponent.
    constexpr float kWhole = 3 << 22, kBias = 127;
    const Floats shifted = x * 1.44269504f + (kWhole + kBias);
    const Floats n = shifted - (kWhole + kBias);
    const Floats r = x - n * 0.693359375f + n * 2.12194440e-4f;
    Floats p = r * 1.9875691500e-4f + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    return lost ? Floats{} : p * Floats(Ints(shifted) << 23);
}

// Softmax of the first `count` of `size` numbers (whole vectors), in place; the others become 0.
void softmax(float* x, int64_t count, int64_t size) {
    for (int64_t i = count; i < size; ++i) x[i] = kMinusInfinity;
    Floats top = Floats{} + kMinusInfinity, total{};
    for (int64_t i = 0; i < size; i += kLanes) top = larger(top, load(x + i));
    const float most = largest(top);
    for (int64_t i = 0; i < size; i += kLanes) {
        const Floats e = exponential(load(x + i) - most);
        store(e, x + i);
        total += e;
    }
    const float share = 1 / sum(total);
    for (int64_t i = 0; i < size; i += kLanes) store(load(x + i) * share, x + i);
}

}  // namespace

// Instances of a function template in the order of TYPES in library.py, which calls them as plain C
// functions, with the address of a tensor's first element.
#define EXPORT(name)                                                                   \
    extern "C" void* const name##_instances[] = {reinterpret_cast<void*>(&name<float>), \
                                                 reinterpret_cast<void*>(&name<BFloat16>)};
