// The losses of rows of logits and the gradient of their sum, each row while it is in the cache.
// Plain C functions for row_losses.py; tensors are given by their first element.

#include <cmath>
#include <cstdint>
#include <vector>

#include "parallel.h"
#include "vectors.h"

namespace {

struct Rows {  // as row_losses.py's
    int64_t count, classes;
    float gold_share;
};

constexpr int64_t kRows = 8;  // of a task

// softmax(x), less `gold_share` at the gold class, into `gradient`, which may be x.
template <class Number>
void row_loss(const Rows& s, const Number* x, int64_t gold, Number* gradient, float* nll,
              float* log_z, bool* is_likeliest) {
    thread_local std::vector<float> room;
    const int64_t size = in_lanes(s.classes);
    room.resize(size);
    float* const e = room.data();
    const int64_t whole = s.classes / kLanes * kLanes, rest = s.classes - whole;
    for (int64_t i = 0; i < whole; i += kLanes) store(load(x + i), e + i);
    if (rest) store(load(x + whole, rest, kMinusInfinity), e + whole);

    const float most = largest(e, size), gold_logit = e[gold];
    const float z = exponentiate(e, size, most);
    *log_z = most + std::log(z);
    *nll = *log_z - gold_logit;
    *is_likeliest = gold_logit == most;

    e[gold] -= s.gold_share * z;
    for (int64_t i = 0; i < whole; i += kLanes) store(load(e + i) * (1 / z), gradient + i);
    if (rest) store(load(e + whole) * (1 / z), gradient + whole, rest);
}

}  // namespace

// A function for each type of number.
#define EXPORT(Number, suffix)                                                                   \
    extern "C" void row_losses_##suffix(const Rows* s, Parallel parallel, int64_t threads,       \
                                        const Number* logits, const int64_t* gold,               \
                                        Number* gradient, float* nll, float* log_z,              \
                                        bool* is_likeliest) {                                    \
        for_each_row(s->count, kRows, parallel, threads, [=](int64_t r) {                        \
            row_loss(*s, logits + r * s->classes, gold[r], gradient + r * s->classes, nll + r,   \
                     log_z + r, is_likeliest + r);                                               \
        });                                                                                      \
    }

EXPORT(float, float32)
EXPORT(BFloat16, bfloat16)
