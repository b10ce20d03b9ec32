// Random numbers by their place in the sequence of a seed, so that they can be drawn again.

#pragma once

#include <cstdint>
#include <cstring>

#ifdef __AVX512F__
#include <immintrin.h>
#endif

#include "vectors.h"

namespace {

// 128 numbers from 0 to 65,535: sixteen counters of Philox4x32-10 (Salmon et al., *Parallel Random
// Numbers: As Easy as 1, 2, 3*, SC 2011), 128 bits each.
class Draws {
   public:
    static constexpr int kVectors = 8, kNumbers = kVectors * kLanes;

    Draws() = default;

    Draws(uint64_t seed, uint64_t block) {
        Words c[4] = {};  // of each counter: its words, the lower halves of 64 bits
        for (int i = 0; i < kLanes; ++i) c[0][i] = block << 4 | i;
        c[1] += block >> 28;
        uint64_t key[2] = {seed & kLow, seed >> 32};
        for (int round = 0; round < 10; ++round) {
            const Words first = product(c[0], 0xD2511F53), second = product(c[2], 0xCD9E8D57);
            c[0] = second >> 32 ^ c[1] ^ key[0];
            c[1] = second;
            c[2] = first >> 32 ^ c[3] ^ key[1];
            c[3] = first;
            key[0] = (key[0] + 0x9E3779B9) & kLow;
            key[1] = (key[1] + 0xBB67AE85) & kLow;
        }
        for (int i = 0; i < 4; ++i) words_[i] = __builtin_convertvector(c[i], Ints);
    }

    Ints vector(int i) const { return words_[i / 2] >> 16 * (i % 2) & 0xffff; }

   private:
    typedef uint64_t Words __attribute__((vector_size(8 * kLanes)));
    static constexpr uint64_t kLow = 0xffffffff;

    static Words product(Words a, uint64_t b) {  // of lower halves
#ifdef __AVX512F__
        __m512i halves[2];
        std::memcpy(halves, &a, sizeof a);
        for (__m512i& half : halves) half = _mm512_mul_epu32(half, _mm512_set1_epi64(b));
        std::memcpy(&a, halves, sizeof a);
        return a;
#else
        return (a & kLow) * b;
#endif
    }

    Ints words_[4];
};

}  // namespace
