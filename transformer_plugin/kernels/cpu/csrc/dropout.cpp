// Dropout. A seed decides what is dropped, so the gradient needs no stored mask.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "parallel.h"
#include "vectors.h"

namespace {

struct Dropout {  // as in dropout.py
    int64_t size;
    uint64_t seed;
    int64_t dropped;  // of 65,536
    float factor;     // of an element that is kept
};

constexpr int kWords = 64, kDraws = 4 * kWords;  // random numbers of 64 and of 16 bits
constexpr int64_t kBlock = 64 * kDraws;          // elements of a task

// A random number for each counter: SplitMix64 (Steele, Lea and Flood, *Fast splittable
// pseudorandom number generators*, OOPSLA 2014).
uint64_t random_bits(uint64_t seed, uint64_t counter) {
    uint64_t z = seed + counter * 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

// The factors of a vector of elements: 0 for a dropped one.
Floats kept(const Dropout& d, const uint16_t* draws) {
    Halves bits;
    std::memcpy(&bits, draws, sizeof bits);
    return __builtin_convertvector(bits, Ints) < int32_t(d.dropped) ? Floats{}
                                                                    : Floats{} + d.factor;
}

template <class Number>
void drop_block(const Dropout& d, int64_t block, const Number* x, Number* out) {
    uint64_t words[kWords];
    uint16_t draws[kDraws];
    const int64_t end = std::min(d.size, (block + 1) * kBlock);
    for (int64_t start = block * kBlock; start < end; start += kDraws) {
        for (int i = 0; i < kWords; ++i) words[i] = random_bits(d.seed, start / 4 + i);
        std::memcpy(draws, words, sizeof draws);
        const int64_t count = std::min<int64_t>(kDraws, end - start);
        int64_t i = 0;
        for (; i + kLanes <= count; i += kLanes)
            store(load(x + start + i) * kept(d, draws + i), out + start + i);
        if (i == count) continue;
        Number last[kLanes];
        store(load(x + start + i, int(count - i), 0) * kept(d, draws + i), last);
        std::memcpy(out + start + i, last, (count - i) * sizeof(Number));
    }
}

template <class Number>
void drop(const Dropout& d, Parallel parallel, int64_t threads, const Number* x, Number* out) {
    for_each((d.size + kBlock - 1) / kBlock, parallel, threads,
             [&](int64_t block) { drop_block(d, block, x, out); });
}

}  // namespace

// Size and field offsets of Dropout; a test compares them with Python's.
extern "C" const int64_t dropout_layout[] = {sizeof(Dropout), offsetof(Dropout, size),
                                             offsetof(Dropout, seed), offsetof(Dropout, dropped),
                                             offsetof(Dropout, factor)};

EXPORT(drop)
