// Arguments of attention in one decoding step.

#pragma once

#include <cstdint>

namespace {

struct Attention {  // as in decoder_cache.py
    int64_t queries, heads, d_k, d_v;
    int64_t query_stride, row_stride;       // elements from one row to the next
    int64_t group;                          // number of consecutive queries that see the same rows
    int64_t positions;                      // number that a query sees, without `lengths`
    int64_t group_stride, position_stride;  // of row_numbers
    // The keys of group g at position t, followed by its values, are row row_numbers[g][t] of
    // keys[t].
    const void** keys;
    const int32_t* row_numbers;
    const int64_t* lengths;  // number of positions that each group sees; null if all see the same
    float scale;
};

}  // namespace
