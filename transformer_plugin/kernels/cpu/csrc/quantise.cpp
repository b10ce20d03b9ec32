// Rounding to 8 bits, as in modules/int8_linear.py.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "vectors.h"

namespace {

typedef uint8_t Bytes __attribute__((vector_size(kLanes)));

constexpr float kLevels = 127, kSmallest = 1e-30f;

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

}  // namespace

EXPORT(quantise)
