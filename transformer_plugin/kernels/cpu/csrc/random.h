// Random numbers by their place in the sequence of a seed, so that they can be drawn again.

#pragma once

#include <cstdint>
#include <cstring>

#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "vectors.h"

namespace {

// 128 numbers from 0 to 65,535: sixteen counters of Philox4x32-10 (Salmon et al., *Parallel Random
// Numbers: As Easy as 1, 2, 3*, SC 2011), 128 bits each.
class Draws {
   public:
    static constexpr int kNumbers = 128, kVectors = kNumbers / kLanes;

    Draws() = default;

    Draws(uint64_t seed, uint64_t block) {
        for (int start = 0; start < kCounters; start += kWords) draw(seed, block, start);
    }

    // A vector holds one half of one word of neighbouring counters.
    Ints vector(int i) const {
        constexpr int kOfHalf = kCounters / kLanes;
        const int half = i / kOfHalf;
        Ints words;
        std::memcpy(&words, words_[half / 2] + i % kOfHalf * kLanes, sizeof words);
        return words >> 16 * (half % 2) & 0xffff;
    }

   private:
    static constexpr int kCounters = 16, kWords = kLanes / 2;
    static constexpr uint64_t kLow = 0xffffffff;
    typedef uint64_t Words __attribute__((vector_size(8 * kWords)));  // lower halves of 64 bits
    typedef int32_t Narrow __attribute__((vector_size(4 * kWords)));

    void draw(uint64_t seed, uint64_t block, int start) {
        Words c[4] = {};  // of each counter: its words
        for (int i = 0; i < kWords; ++i) c[0][i] = block << 4 | (start + i);
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
        for (int i = 0; i < 4; ++i) {
            const Narrow words = __builtin_convertvector(c[i], Narrow);
            std::memcpy(words_[i] + start, &words, sizeof words);
        }
    }

    static Words product(Words a, uint64_t b) {  // of lower halves
#if defined __AVX512F__
        return Words(_mm512_mul_epu32(__m512i(a), _mm512_set1_epi64(b)));
#elif defined __AVX2__
        return Words(_mm256_mul_epu32(__m256i(a), _mm256_set1_epi64x(b)));
#else
        return (a & kLow) * b;
#endif
    }

    int32_t words_[4][kCounters];
};

}  // namespace
