// SPDX-License-Identifier: Apache-2.0
//
// ops/experts/finalize.h: the weighted sum of a token's expert rows.
//
// Math      y[t, d] = sum over k with row_of[t*K + k] >= 0 of weights[t, k] * z[row_of[t*K + k], d]
// Shapes    z [rows,D]  weights [n,K]  row_of [n*K]  n_live [1]  y [n,D]
// Types     z,weights,y bf16 f32; row_of,n_live i32
// Rounding  products and sums f32, not contracted; one round-to-nearest-even when y is bf16
// Order     slots k = 0 .. K-1
// Aliasing  y overlaps nothing
// Bounds    rows >= n_live: nothing read, y zero. A token with no local pair gets zeros
// Graph     capture-safe: no sync, allocation or host read
// Scratch   none
// Cost      bytes = n*K*D + 2*n*K + n*D;  flops = 2*n*K*D
#pragma once

#include "ops/operand.h"

namespace lr::ops {

struct FinalizeArgs {
    ConstView z;       // [rows, D]
    ConstView weights; // [n, K]
    ConstView row_of;  // [n*K] i32
    ConstView n_live;  // [1] i32
    View y;            // [n, D]

    template <typename Visitor> void visit(Visitor& v) {
        v.in("z", z);
        v.in("weights", weights);
        v.in("row_of", row_of);
        v.in("n_live", n_live);
        v.out("y", y);
    }
};

Status check(const FinalizeArgs& args);
Cost cost(const FinalizeArgs& args);

} // namespace lr::ops
