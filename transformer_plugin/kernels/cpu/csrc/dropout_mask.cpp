// Random masks for dropout.
// Plain C functions for dropout.py; a tensor is passed as the address of its first element.

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace {

// A random number for each counter: SplitMix64 (Steele, Lea and Flood, *Fast splittable
// pseudorandom number generators*, OOPSLA 2014).
uint64_t random_bits(uint64_t seed, uint64_t counter) {
    uint64_t z = seed + counter * 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

// Elements are zero if 16 random bits are below `dropped`, else `kept`, in the bits of their type.
template <class Bits>
void draw_mask(int64_t size, uint64_t seed, int64_t dropped, Bits kept, Bits* mask) {
    constexpr int kWords = 64, kElements = 4 * kWords;
    uint64_t words[kWords];
    uint16_t draws[kElements];
    for (int64_t start = 0; start < size; start += kElements) {
        for (int i = 0; i < kWords; ++i) words[i] = random_bits(seed, start / 4 + i);
        std::memcpy(draws, words, sizeof draws);
        const int count = int(std::min<int64_t>(kElements, size - start));
        for (int i = 0; i < count; ++i) mask[start + i] = draws[i] < dropped ? Bits(0) : kept;
    }
}

}  // namespace

extern "C" void draw_mask_float32(int64_t size, uint64_t seed, int64_t dropped,
                                  const uint32_t* kept, uint32_t* mask) {
    draw_mask(size, seed, dropped, *kept, mask);
}

extern "C" void draw_mask_bfloat16(int64_t size, uint64_t seed, int64_t dropped,
                                   const uint16_t* kept, uint16_t* mask) {
    draw_mask(size, seed, dropped, *kept, mask);
}
