// Products of small float32 matrices, C = A B; a tile of C stays in registers.

#pragma once

#include <cstdint>

#include "vectors.h"

namespace {

// A matrix in float32, or its transpose: element (i, j) is start[i * row + j * column].
struct Matrix {
    const float* start;
    int64_t row, column;
};

constexpr int kTile = kLanes / 2;  // rows: with two vectors each, half of the registers

// A tile of A B in registers: kRows rows, kVectors vectors wide. B and C are row-major.
template <int kRows, int kVectors>
void multiply_tile(Matrix a, const float* b, int64_t b_row, int64_t depth, float* c,
                   int64_t c_row, bool add) {
    Floats total[kRows][kVectors];
    for (int i = 0; i < kRows; ++i)
        for (int j = 0; j < kVectors; ++j)
            total[i][j] = add ? load(c + i * c_row + j * kLanes) : Floats{};
    for (int64_t k = 0; k < depth; ++k) {
        Floats right[kVectors];
        for (int j = 0; j < kVectors; ++j) right[j] = load(b + k * b_row + j * kLanes);
        for (int i = 0; i < kRows; ++i) {
            const float left = a.start[i * a.row + k * a.column];
            for (int j = 0; j < kVectors; ++j) total[i][j] += left * right[j];
        }
    }
    for (int i = 0; i < kRows; ++i)
        for (int j = 0; j < kVectors; ++j) store(total[i][j], c + i * c_row + j * kLanes);
}

template <int kRows, int kVectors>
void multiply_rows(Matrix a, int64_t rows, const float* b, int64_t b_row, int64_t depth, float* c,
                   int64_t c_row, bool add) {
    for (; rows >= kRows; rows -= kRows) {
        multiply_tile<kRows, kVectors>(a, b, b_row, depth, c, c_row, add);
        a.start += kRows * a.row;
        c += kRows * c_row;
    }
    if constexpr (kRows > 1)
        multiply_rows<kRows / 2, kVectors>(a, rows, b, b_row, depth, c, c_row, add);
}

// C = A B, or C += A B. A is `rows` x `depth`; the columns of B and C are multiples of kLanes.
void multiply(Matrix a, int64_t rows, int64_t depth, const float* b, int64_t b_row,
              int64_t columns, float* c, int64_t c_row, bool add = false) {
    for (; columns >= 2 * kLanes; columns -= 2 * kLanes, b += 2 * kLanes, c += 2 * kLanes)
        multiply_rows<kTile, 2>(a, rows, b, b_row, depth, c, c_row, add);
    if (columns) multiply_rows<kTile, 1>(a, rows, b, b_row, depth, c, c_row, add);
}

}  // namespace
