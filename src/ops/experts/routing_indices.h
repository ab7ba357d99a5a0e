// SPDX-License-Identifier: Apache-2.0
//
// ops/experts/routing_indices.h: where each (token, slot) pair lies in the expert-ordered rows.
//
// Math      with e = ids[t, k] - first_expert, local when 0 <= e < L:
//             counts[e] = pairs of e;  start[0] = 0, start[e] = align_up(end[e-1], A),
//             end[e] = start[e] + counts[e];
//           the pairs of e, in ascending flat = t*K + k, take rows start[e], start[e]+1, ...:
//             row_map[row] = flat, row_of[flat] = row;  weights_out = weights
// Shapes    ids,weights,weights_out [n,K]  n_live [1]  counts,start,end [L]  row_map [rows]
//           row_of [n*K]
// Types     i32; weights and weights_out bf16 or f32, the same, both present or both absent
// Rounding  none
// Order     rows of an expert ascend in flat index, whatever the device
// Aliasing  outputs overlap nothing
// Bounds    rows >= n_live: ids and weights not read, row_of -1, weights_out 0. Pairs of another
//           rank's expert: row_of -1. Rows outside [start[e], end[e]): row_map -1, all of them, the
//           tail of the capacity included. rows >= experts::rows_capacity(n, K, L, A) is the
//           caller's promise
// Graph     capture-safe: no sync, allocation or host read; capacity is baked, counts are not
// Scratch   none
// Cost      bytes = 8*n*K + 12*L + 4*rows, and both weights;  flops = 0
#pragma once

#include "ops/operand.h"

namespace lr::ops {

struct RoutingIndicesArgs {
    ConstView ids;     // [n, K] i32, expert of the whole model, -1 = none
    ConstView weights; // optional [n, K]: handed on to weights_out
    ConstView n_live;  // [1] i32
    View counts;       // [L] i32
    View start;        // [L] i32
    View end;          // [L] i32
    View row_map;      // [rows] i32: row -> flat n*K + k, -1 = pad
    View row_of;       // [n*K] i32: flat -> row, -1 = not local or dead
    View weights_out;  // optional [n, K]
    std::int32_t first_expert = 0;
    std::int32_t align = 1;

    template <typename Visitor> void visit(Visitor& v) {
        v.in("ids", ids);
        v.in("weights", weights);
        v.in("n_live", n_live);
        v.out("counts", counts);
        v.out("start", start);
        v.out("end", end);
        v.out("row_map", row_map);
        v.out("row_of", row_of);
        v.out("weights_out", weights_out);
    }
};

Status check(const RoutingIndicesArgs& args);
Cost cost(const RoutingIndicesArgs& args);

} // namespace lr::ops
