// SPDX-License-Identifier: Apache-2.0
//
// ops/gdn/chunk_kkt_solve.h: the inverse that turns a chunk of delta-rule steps into one product
// (prefill-gdn node 13).
//
// Math      per chunk and value head h, key head h / (Hv/Hk):
//             A_ij = beta_i (kn_i . kn_j) exp(G_i - G_j) for j < i, else 0
//             a_inv = (I + A)^-1, unit lower triangular, by forward substitution:
//             X_ij = -A_ij - sum over j < m < i of A_im X_mj,  X_ii = 1
// Shapes    k [n, Hk, dk]   beta, g_cumsum [n, Hv]   chunk_row, chunk_len [NC]   a_inv [n, Hv, 64]
//           row i of the chunk holds row i of the inverse; Hv % Hk == 0, dk % 16 == 0
// Types     k, a_inv bf16 or f32; beta, g_cumsum f32; chunk tables i32
// Rounding  A and the substitution f32, one rounding when a_inv is stored (kModel and kF32 alike:
//           the dtype of a_inv decides)
// Order     dot products over dk and substitution over m ascending
// Aliasing  nothing overlaps
// Bounds    the exponent is only formed for j < i; entries above the diagonal and rows outside all
//           chunks are not written (node 12 zeroed them); chunk_len 1..64, 0 = unused chunk
// Graph     capture-safe; chunk tables are device data
// Scratch   none
// Cost      bytes = k + beta + g_cumsum + a_inv;  flops = n*64*(Hk*dk + Hv*64/3)
#pragma once

#include "core/status.h"
#include "ops/op.h"

namespace lr::ops {

struct ChunkKktSolveArgs {
    ConstView k;         // [n, Hk, dk] unit length
    ConstView beta;      // [n, Hv] f32
    ConstView g_cumsum;  // [n, Hv] f32
    ConstView chunk_row; // [NC] i32
    ConstView chunk_len; // [NC] i32
    View a_inv;          // [n, Hv, 64]
    Precision precision = Precision::kModel;

    template <typename Visitor> void visit(Visitor& visitor) {
        visitor.in("k", k);
        visitor.in("beta", beta);
        visitor.in("g_cumsum", g_cumsum);
        visitor.in("chunk_row", chunk_row);
        visitor.in("chunk_len", chunk_len);
        visitor.state("a_inv", a_inv);
    }
};

Status check(const ChunkKktSolveArgs& args);
Cost cost(const ChunkKktSolveArgs& args);

} // namespace lr::ops
