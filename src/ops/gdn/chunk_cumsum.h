// SPDX-License-Identifier: Apache-2.0
//
// ops/gdn/chunk_cumsum.h: running sum of the log decay inside each chunk (prefill-gdn node 11).
//
// Math      G_i = sum of g_m, m <= i, restarting at each chunk (exp, not exp2, is taken of it)
// Shapes    g, g_cumsum [n, Hv]   chunk_row, chunk_len [NC]
// Types     g, g_cumsum f32; chunk_row, chunk_len i32
// Rounding  f32
// Order     rows ascending
// Aliasing  g_cumsum may be g itself
// Bounds    chunk_len 1..64, 0 = unused chunk; the chunks cover every live row once;
//           row >= n_live: zero
// Graph     capture-safe; chunk tables and n_live are device data
// Scratch   none
// Cost      bytes = g + g_cumsum + chunk tables;  flops = n*Hv
#pragma once

#include "core/status.h"
#include "ops/op.h"

namespace lr::ops {

struct ChunkCumsumArgs {
    ConstView g;         // [n, Hv] f32
    ConstView chunk_row; // [NC] i32, first row of the chunk
    ConstView chunk_len; // [NC] i32
    ConstView n_live;    // [1] i32, optional
    View g_cumsum;       // [n, Hv] f32

    template <typename Visitor> void visit(Visitor& visitor) {
        visitor.in("g", g);
        visitor.in("chunk_row", chunk_row);
        visitor.in("chunk_len", chunk_len);
        visitor.in("n_live", n_live);
        visitor.out("g_cumsum", g_cumsum);
    }
};

Status check(const ChunkCumsumArgs& args);
Cost cost(const ChunkCumsumArgs& args);

} // namespace lr::ops
