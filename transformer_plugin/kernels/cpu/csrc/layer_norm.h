// Layer normalisation of a row (Ba et al., 2016, equation 4), a vector after the other.

#pragma once

#include <cmath>

#include "vectors.h"

namespace {

struct Moments {
    float mean, inverse;  // 1 / the deviation
};

// Those of `width` numbers, whose sum is the sum of `sums`.
template <class Number>
Moments moments(const Number* row, int64_t width, Floats sums, float epsilon) {
    const float mean = sum(sums) / width;
    Floats squares{};
    for (int64_t i = 0; i < width; i += kLanes) {
        const Floats difference = load(row + i) - mean;
        squares += difference * difference;
    }
    return {mean, 1 / std::sqrt(sum(squares) / width + epsilon)};
}

template <class Number>
Floats normalised(Floats v, const Moments& of_row, const Number* gain, const Number* bias) {
    return (v - of_row.mean) * of_row.inverse * load(gain) + load(bias);
}

}  // namespace
