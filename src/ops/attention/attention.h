// SPDX-License-Identifier: Apache-2.0
//
// ops/attention/attention.h: causal grouped-query attention of rows over the paged cache. Prefill
// and decode are the same op: a row is a (sequence, position) pair, in any order.
//
// Math      row i of sequence b = row_seq[i] sees positions t = 0 .. positions[i]; token t lies in
//           page page_table[b, t/64] at offset t%64; query head h reads KV head h / (Hq/Hkv):
//             o = sum_t p_t v_t,  p = softmax_t(scale * (q . k_t))
// Shapes    q [n,Hq,dh]   k_cache, v_cache [P,64,Hkv,dh]   page_table [B,MP]   row_seq, positions
//           [n]   n_live [1]   o [n,Hq*dh];  Hq % Hkv == 0; rows of q may be strided
// Types     q, k_cache, v_cache, o bf16 or f32; page_table, row_seq, positions, n_live i32;
//           workspace any
// Rounding  scores, softmax, P and sums all f32; one rounding when o is stored
// Order     one page of 64 after another, page 0 first. In a page: dots over dh in the fixed tree
//           of cpu/rows.h; m' = max(m, scores); o and the sum of P are scaled by exp(m - m'), then
//           tokens are added in ascending order. A row's bits depend on its q, its own keys and
//           values and its position: not on other rows, page placement, or prefill against decode
//           (on a GPU the two add in different orders: a decode merges runs of two pages)
// Aliasing  nothing may overlap
// Bounds    row_seq -1 or row >= n_live: o zero, no page read; positions in [0, 64*MP); page ids
//           that a row reaches lie in [0,P), the rest of page_table and cache is never read
// Graph     capture-safe: no sync, allocation or host read; tables and positions are data
// Scratch   workspace, for devices that split a row's context; the CPU function takes none
// Cost      q and o once, the pages of page_table at most once: min(P, B*MP)*64 tokens of K and V;
//           4*Hq*dh FLOPs per row and visible token, counted as n*(64*MP) (the table's capacity;
//           a step with known lengths scales it)
#pragma once

#include "ops/op.h"

namespace lr::ops {

struct AttentionArgs {
    ConstView q;              // [n,Hq,dh]
    ConstView k_cache;        // [P,64,Hkv,dh]
    ConstView v_cache;        // [P,64,Hkv,dh]
    ConstView page_table;     // [B,MP]
    ConstView row_seq;        // [n], -1 = padding
    ConstView positions;      // [n]
    ConstView n_live = {};    // [1]
    ConstView workspace = {}; // optional, any shape
    View o;                   // [n,Hq*dh]
    float scale = 1.0f;
    Precision precision = Precision::kModel;

    template <typename Visitor> void visit(Visitor& v) {
        v.in("q", q);
        v.in("k_cache", k_cache);
        v.in("v_cache", v_cache);
        v.in("page_table", page_table);
        v.in("row_seq", row_seq);
        v.in("positions", positions);
        v.in("n_live", n_live);
        v.in("workspace", workspace);
        v.out("o", o);
    }
};

Status check(const AttentionArgs& args);
Cost cost(const AttentionArgs& args);

} // namespace lr::ops
