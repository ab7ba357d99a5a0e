// SPDX-License-Identifier: Apache-2.0
//
// ops/gemm/splitk_reduce.h: adds the partial sums of linear_splitk.
//
// Math      y[i, j] = sum_s partial[s, i, j]
// Shapes    partial [splits,n,N]  n_live [1]  y [n,N]
// Types     partial f32; n_live i32; y bf16 f32
// Rounding  sums f32; one round-to-nearest-even when y is bf16
// Order     ascending s
// Aliasing  y overlaps nothing
// Bounds    rows >= n_live: partial not read, y zero
// Graph     capture-safe: no sync, allocation or host read
// Scratch   none
// Cost      bytes = 4*splits*n*N + n*N;  flops = splits*n*N
#pragma once

#include "ops/operand.h"

namespace lr::ops {

struct SplitkReduceArgs {
    ConstView partial; // [splits, n, N] f32
    ConstView n_live;  // [1] i32
    View y;            // [n, N]

    template <typename Visitor> void visit(Visitor& v) {
        v.in("partial", partial);
        v.in("n_live", n_live);
        v.out("y", y);
    }
};

Status check(const SplitkReduceArgs& args);
Cost cost(const SplitkReduceArgs& args);

} // namespace lr::ops
