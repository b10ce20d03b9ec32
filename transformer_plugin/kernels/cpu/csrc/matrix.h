// Products of float32 matrices. The sums of a tile of the product stay in registers.

#pragma once

#include <cstdint>

#include "vectors.h"

namespace {

// A matrix in float32, or its transpose: element (i, j) is start[i * row + j * column].
struct Matrix {
    const float* start;
    int64_t row, column;
};

constexpr int kTile = 6;                        // rows of a tile,
constexpr int kVectors = kLanes == 16 ? 4 : 2;  // and vectors: AVX-512 has 32 registers
constexpr int64_t kAhead = 8;                   // rows of B that are fetched in advance

// Calls put(row, vector, sums) for each vector of A B. A is `rows` x `depth`; B, row-major, is
// kWide vectors wide. Each sum is computed in the same order, whatever the number of rows.
template <int kRows, int kWide, class Put>
void multiply_tiles(Matrix a, int64_t rows, int64_t depth, const float* b, int64_t b_row, Put put,
                    int64_t row = 0) {
    for (; row + kRows <= rows; row += kRows) {
        Floats total[kRows][kWide] = {};
        for (int64_t k = 0; k < depth; ++k) {
            Floats right[kWide];
            for (int j = 0; j < kWide; ++j) {
                right[j] = load(b + k * b_row + j * kLanes);
                __builtin_prefetch(b + (k + kAhead) * b_row + j * kLanes);
            }
            for (int i = 0; i < kRows; ++i) {
                const float left = a.start[(row + i) * a.row + k * a.column];
                for (int j = 0; j < kWide; ++j) total[i][j] += left * right[j];
            }
        }
#pragma GCC unroll 24  // a loop over the sums would keep them in memory
        for (int n = 0; n < kRows * kWide; ++n)
            put(row + n / kWide, n % kWide, total[n / kWide][n % kWide]);
    }
    if constexpr (kRows > 1) multiply_tiles<kRows / 2, kWide>(a, rows, depth, b, b_row, put, row);
}

// C = A B, or C += A B. The columns of B and C, row-major, are multiples of kLanes.
template <int kWide = kVectors>
void multiply(Matrix a, int64_t rows, int64_t depth, const float* b, int64_t b_row,
              int64_t columns, float* c, int64_t c_row, bool add = false) {
    for (; columns >= kWide * kLanes; columns -= kWide * kLanes, b += kWide * kLanes) {
        multiply_tiles<kTile, kWide>(a, rows, depth, b, b_row, [&](int64_t i, int j, Floats y) {
            float* const to = c + i * c_row + j * kLanes;
            store(add ? load(to) + y : y, to);
        });
        c += kWide * kLanes;
    }
    if constexpr (kWide > 1)
        multiply<kWide / 2>(a, rows, depth, b, b_row, columns, c, c_row, add);
}

}  // namespace
