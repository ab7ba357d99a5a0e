// SPDX-License-Identifier: Apache-2.0
//
// ops/gdn/chunk_recompute_wu.h: the chunk's effective values and keys (prefill-gdn node 14).
//
// Math      per chunk and value head h, key head h / (Hv/Hk), sums over j <= i:
//             u_i = sum a_inv_ij (beta_j v_j);  w_i = sum a_inv_ij (beta_j exp(G_j) kn_j)
// Shapes    k [n, Hk, dk]   v, u [n, Hv, dv]   beta, g_cumsum [n, Hv]   a_inv [n, Hv, 64]
//           w [n, Hv, dk]   chunk_row, chunk_len [NC];  Hv % Hk == 0, dk, dv % 16 == 0
// Types     k, v, a_inv, w, u bf16 or f32; beta, g_cumsum f32; chunk tables i32
// Rounding  kModel rounds the operands beta v and (beta exp(G)) kn to bf16; products and sums f32;
//           one rounding when u and w are stored
// Order     j ascending
// Aliasing  nothing overlaps
// Bounds    a_inv is read on and below the diagonal only; row >= n_live: u and w zero;
//           chunk_len 1..64, 0 = unused chunk; the chunks cover every live row once
// Graph     capture-safe; chunk tables and n_live are device data
// Scratch   none
// Cost      bytes = k + v + beta + g_cumsum + a_inv + w + u;  flops = n*64*Hv*(dk + dv)
#pragma once

#include "core/status.h"
#include "ops/op.h"

namespace lr::ops {

struct ChunkRecomputeWuArgs {
    ConstView k;         // [n, Hk, dk] unit length
    ConstView v;         // [n, Hv, dv]
    ConstView beta;      // [n, Hv] f32
    ConstView g_cumsum;  // [n, Hv] f32
    ConstView a_inv;     // [n, Hv, 64]
    ConstView chunk_row; // [NC] i32
    ConstView chunk_len; // [NC] i32
    ConstView n_live;    // [1] i32, optional
    View w;              // [n, Hv, dk]
    View u;              // [n, Hv, dv]
    Precision precision = Precision::kModel;

    template <typename Visitor> void visit(Visitor& visitor) {
        visitor.in("k", k);
        visitor.in("v", v);
        visitor.in("beta", beta);
        visitor.in("g_cumsum", g_cumsum);
        visitor.in("a_inv", a_inv);
        visitor.in("chunk_row", chunk_row);
        visitor.in("chunk_len", chunk_len);
        visitor.in("n_live", n_live);
        visitor.out("w", w);
        visitor.out("u", u);
    }
};

Status check(const ChunkRecomputeWuArgs& args);
Cost cost(const ChunkRecomputeWuArgs& args);

} // namespace lr::ops
