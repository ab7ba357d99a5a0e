// SPDX-License-Identifier: Apache-2.0
//
// ops/gdn/chunk_output.h: reads the memory for every row of a chunk (prefill-gdn node 17).
//
// Math      per chunk and value head h, key head h / (Hv/Hk), sums over j <= i (diagonal included):
//             P_ij = (qn_i . kn_j) exp(G_i - G_j)
//             o_i = dk^-0.5 (exp(G_i) (h qn_i) + sum_j P_ij v_new_j)
// Shapes    q, k [n, Hk, dk]   v_new, o [n, Hv, dv]   h [NC, Hv, dv, dk]   g_cumsum [n, Hv]
//           chunk_row, chunk_len [NC];  Hv % Hk == 0, dk, dv % 16 == 0
// Types     q, k, v_new, h, o bf16 or f32; g_cumsum f32; chunk tables i32
// Rounding  kModel rounds P to bf16; all else f32, one rounding when o is stored
// Order     sums over dk and over j ascending
// Aliasing  nothing overlaps
// Bounds    the exponent is only formed for j <= i; rows outside all chunks are not written
//           (node 16 zeroed them); chunk_len 1..64, 0 = unused chunk
// Graph     capture-safe; chunk tables are device data
// Scratch   none
// Cost      bytes = q + k + v_new + h + g_cumsum + o;
//           flops = n*(2*Hv*dv*dk + 64*(Hk*dk + Hv*dv))
#pragma once

#include "core/status.h"
#include "ops/op.h"

namespace lr::ops {

struct ChunkOutputArgs {
    ConstView q;         // [n, Hk, dk] unit length, not scaled
    ConstView k;         // [n, Hk, dk] unit length
    ConstView v_new;     // [n, Hv, dv]
    ConstView h;         // [NC, Hv, dv, dk]
    ConstView g_cumsum;  // [n, Hv] f32
    ConstView chunk_row; // [NC] i32
    ConstView chunk_len; // [NC] i32
    View o;              // [n, Hv, dv]
    Precision precision = Precision::kModel;

    template <typename Visitor> void visit(Visitor& visitor) {
        visitor.in("q", q);
        visitor.in("k", k);
        visitor.in("v_new", v_new);
        visitor.in("h", h);
        visitor.in("g_cumsum", g_cumsum);
        visitor.in("chunk_row", chunk_row);
        visitor.in("chunk_len", chunk_len);
        visitor.state("o", o);
    }
};

Status check(const ChunkOutputArgs& args);
Cost cost(const ChunkOutputArgs& args);

} // namespace lr::ops
