// SPDX-License-Identifier: Apache-2.0
//
// ops/gemm/linear_splitk.h: a narrow linear layer whose K is cut into runs, so that few output
// columns still fill a device; splitk_reduce adds the partial sums.
//
// Math      partial[s, i, j] = sum over k in run s of x[i, k] * w[j, k];  run s is
//           [s*len, min((s+1)*len, K)) with len = align_up(ceil(K / splits), 64)
// Shapes    x [n,K]  n_live [1]  w [N,K]  partial [splits,n,N]
// Types     x bf16 f32; n_live i32; w plain (bf16 f16 f32); partial f32
// Rounding  products and sums f32; partial never rounded
// Order     the fixed tree of cpu/rows.h dot over each run: depends on splits, never on n
// Aliasing  partial overlaps nothing
// Bounds    rows >= n_live: x not read, partial zero; a run beyond K gives zeros
// Graph     capture-safe: no sync, allocation or host read; splits is baked
// Scratch   none
// Cost      bytes = n*K + weight + 4*splits*n*N;  flops = 2*n*N*K
#pragma once

#include "ops/operand.h"

namespace lr::ops {

struct LinearSplitkArgs {
    ConstView x;      // [n, K]
    ConstView n_live; // [1] i32
    Weight w;         // [N, K] plain
    View partial;     // [splits, n, N] f32

    template <typename Visitor> void visit(Visitor& v) {
        v.in("x", x);
        v.in("n_live", n_live);
        v.weight("w", w);
        v.out("partial", partial);
    }
};

// Length of a run of K.
constexpr std::int64_t splitk_run(std::int64_t k, std::int64_t splits) {
    return ((k + splits - 1) / splits + 63) / 64 * 64;
}

Status check(const LinearSplitkArgs& args);
Cost cost(const LinearSplitkArgs& args);

} // namespace lr::ops
