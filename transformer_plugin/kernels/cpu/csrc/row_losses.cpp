// The smoothed loss of each row of logits and its gradient, while the row is in the inner cache.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "parallel.h"
#include "vectors.h"

namespace {

struct RowLosses {  // as in row_losses.py
    int64_t rows, classes;
    float share;       // probability of each class in the smoothed target
    float gold_share;  // additional probability of the gold class
};

constexpr int64_t kRows = 8;  // of a task

// Replaces the logits x of a row by softmax(x) - q, with q the smoothed target.
template <class Number>
void row_loss(const RowLosses& s, Number* x, int64_t gold, float* loss, float* nll, bool* correct) {
    thread_local std::vector<float> room;
    const int64_t size = in_lanes(s.classes), whole = s.classes / kLanes * kLanes;
    room.resize(size);
    float* const p = room.data();

    Floats top = Floats{} + kMinusInfinity;
    for (int64_t i = 0; i < size; i += kLanes) {
        const Floats logits = vector(x, s.classes, i);
        store(logits, p + i);
        top = larger(top, logits);
    }
    const float most = largest(top), gold_logit = p[gold];
    Floats total{}, differences{};
    for (int64_t i = 0; i < size; i += kLanes) {
        const Floats difference = load(p + i) - most, e = exponential(difference);
        store(e, p + i);
        total += e;
        if (i < whole) differences += difference;
    }
    float sum_of_differences = sum(differences);
    for (int64_t i = whole; i < s.classes; ++i) sum_of_differences += number(x[i]) - most;

    const float z = sum(total), log_z = std::log(z);
    *nll = most - gold_logit + log_z;  // in this order: the logits may be much larger
    *loss = s.gold_share * *nll - s.share * (sum_of_differences - s.classes * log_z);
    *correct = gold_logit >= most && z == z;  // z is NaN if any logit is
    p[gold] -= s.gold_share * z;
    for (int64_t i = 0; i < whole; i += kLanes) store(load(p + i) * (1 / z) - s.share, x + i);
    if (whole == s.classes) return;
    Number last[kLanes];
    store(load(p + whole) * (1 / z) - s.share, last);
    std::memcpy(x + whole, last, (s.classes - whole) * sizeof(Number));
}

template <class Number>
void row_losses(const RowLosses& s, Parallel parallel, int64_t threads, Number* logits,
                const int64_t* gold, float* losses, float* nll, bool* correct) {
    for_each((s.rows + kRows - 1) / kRows, parallel, threads, [&](int64_t task) {
        for (int64_t r = task * kRows; r < std::min(s.rows, (task + 1) * kRows); ++r)
            row_loss(s, logits + r * s.classes, gold[r], losses + r, nll + r, correct + r);
    });
}

}  // namespace

// Size and field offsets of RowLosses; a test compares them with Python's.
extern "C" const int64_t row_losses_layout[] = {
    sizeof(RowLosses), offsetof(RowLosses, rows), offsetof(RowLosses, classes),
    offsetof(RowLosses, share), offsetof(RowLosses, gold_share)};

EXPORT(row_losses)
