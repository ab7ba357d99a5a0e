// SPDX-License-Identifier: Apache-2.0
//
// ops/gdn/chunk_state.h: carries the matrix state from chunk to chunk (prefill-gdn node 15).
//
// Math      per sequence and value head h, key head h / (Hv/Hk), over its chunks in order, with S
//           the state at the chunk's start (the slot's, or zero where mask is 0; without a mask the
//           slot's):
//             h = S;  v_new_i = u_i - S w_i
//             S <- exp(G_last) S + sum_i (exp(G_last - G_i) v_new_i) kn_i^T
//           G_last is G at the chunk's last row; the last S is written to the slot
// Shapes    k [n, Hk, dk]   w [n, Hv, dk]   u, v_new [n, Hv, dv]   g_cumsum [n, Hv]
//           chunk_row, chunk_len [NC]   seq_chunk [B+1]   slot, mask [B]
//           ssm_state [S, Hv, dv, dk]   h [NC, Hv, dv, dk];  Hv % Hk == 0, dk, dv % 16 == 0
// Types     k, w, u, h, v_new bf16 or f32; g_cumsum f32; ssm_state f32 or bf16; tables i32
// Rounding  S carried in f32 from chunk to chunk; kModel rounds S to bf16 for the product with w;
//           h and v_new are rounded when stored; the outer product scales the unrounded f32 v_new
//           and kModel rounds exp(.) v_new to bf16 once; a bf16 state is rounded when stored
// Order     sums over dk and over i ascending
// Aliasing  ssm_state is updated in place; nothing overlaps
// Bounds    slot -1: the sequence is unused, h and v_new of its chunks (if any) are zero and no
//           state is touched; a sequence without chunks leaves its state alone; h of unused chunks
//           is not written; row >= n_live: v_new zero
// Graph     capture-safe; all tables and n_live are device data
// Scratch   none
// Cost      bytes = k + w + u + g_cumsum + h + v_new + 2 * B*Hv*dv*dk * state;
//           flops = 4*n*Hv*dv*dk
#pragma once

#include "core/status.h"
#include "ops/op.h"

namespace lr::ops {

struct ChunkStateArgs {
    ConstView k;         // [n, Hk, dk] unit length
    ConstView w;         // [n, Hv, dk]
    ConstView u;         // [n, Hv, dv]
    ConstView g_cumsum;  // [n, Hv] f32
    ConstView chunk_row; // [NC] i32
    ConstView chunk_len; // [NC] i32
    ConstView seq_chunk; // [B+1] i32, first chunk of each sequence
    ConstView slot;      // [B] i32
    ConstView mask = {}; // [B] i32, optional: 1 = start from the slot's state
    ConstView n_live;    // [1] i32, optional
    View ssm_state;      // [S, Hv, dv, dk]
    View h;              // [NC, Hv, dv, dk]
    View v_new;          // [n, Hv, dv]
    Precision precision = Precision::kModel;

    template <typename Visitor> void visit(Visitor& visitor) {
        visitor.in("k", k);
        visitor.in("w", w);
        visitor.in("u", u);
        visitor.in("g_cumsum", g_cumsum);
        visitor.in("chunk_row", chunk_row);
        visitor.in("chunk_len", chunk_len);
        visitor.in("seq_chunk", seq_chunk);
        visitor.in("slot", slot);
        visitor.in("mask", mask);
        visitor.in("n_live", n_live);
        visitor.state("ssm_state", ssm_state);
        visitor.out("h", h);
        visitor.out("v_new", v_new);
    }
};

Status check(const ChunkStateArgs& args);
Cost cost(const ChunkStateArgs& args);

} // namespace lr::ops
