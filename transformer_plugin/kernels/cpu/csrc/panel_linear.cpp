// Linear maps in float32 whose weight panels.py has arranged in panels.

#include <algorithm>
#include <cstdint>

#include "matrix.h"
#include "parallel.h"
#include "vectors.h"

namespace {

constexpr int64_t kPanel = kVectors * kLanes;     // columns
constexpr int64_t kInCache = int64_t(1) << 16;    // numbers in the rows of a block
constexpr int64_t kPerThread = int64_t(1) << 20;  // multiplications that are worth a thread

// x W^T + b, or its ReLU. `width` is at least kPanel; `bias` may be null. Each output is
// summed in a fixed order, so it does not depend on the number of rows or threads.
void panel_linear(const float* x, int64_t rows, int64_t depth, const float* panels, int64_t width,
                  const float* bias, bool relu, float* out, Parallel parallel, int64_t threads) {
    const int64_t count = (width + kPanel - 1) / kPanel;
    const int64_t block = std::max<int64_t>(1, kInCache / depth / kTile) * kTile;
    threads = std::min(threads, 1 + rows * depth * width / kPerThread);
    // No more parts than whole panels, so the last two panels, which may overlap, share a part.
    const int64_t parts = threads > 1 ? std::min(4 * threads, width / kPanel) : 1;
    const auto multiply_part = [&](int64_t part) {
        const int64_t begin = part * count / parts, end = (part + 1) * count / parts;
        for (int64_t first = 0; first < rows; first += block)
            for (int64_t panel = begin; panel < end; ++panel) {
                const int64_t left = std::min(panel * kPanel, width - kPanel);
                const auto put = [&](int64_t row, int vector, Floats total) {
                    const int64_t column = left + vector * kLanes;
                    const Floats y = bias ? total + load(bias + column) : total;
                    store(relu ? larger(Floats{}, y) : y,  // NaN stays NaN
                          out + (first + row) * width + column);
                };
                multiply_tiles<kTile, kVectors>({x + first * depth, depth, 1},
                                                std::min(block, rows - first), depth,
                                                panels + panel * depth * kPanel, kPanel, put);
            }
    };
    for_each(parts, parallel, threads, multiply_part);
}

}  // namespace

extern "C" const int64_t panel_columns = kPanel;

// In the order of TYPES in library.py.
extern "C" void* const panel_linear_instances[] = {reinterpret_cast<void*>(&panel_linear), nullptr};
