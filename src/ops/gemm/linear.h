// SPDX-License-Identifier: Apache-2.0
//
// ops/gemm/linear.h: a linear layer over one or several stacked weights (q|k|v|z, gate|up, ...).
//
// Math      y[i, j] = sum_k x[i, k] * w[j, k]
// Shapes    x [n,K]  x_scale by format (ops/operand.h)  n_live [1]  w [N,K], parts stacked along N
//           y [n,N]
// Types     x bf16 f32, or codes e4m3 e2m1; x_scale f32 or e4m3; n_live i32; w any format that
//           ops/operand.h pairs with x; y bf16 f32
// Rounding  products, sums and scales f32 as ops/operand.h lists them; one round-to-nearest-even
//           when y is bf16, none when it is f32
// Order     the fixed tree of cpu/kernels/kernels.h over K, or, where both rows are exact in
//           bf16 and the instruction set multiplies such numbers, that of cpu/kernels/bf16_dot.h: a
//           result depends on its row of x, its row of w and K only, never on n, tile or threads
// Aliasing  y overlaps nothing
// Bounds    rows >= n_live: x and x_scale not read, y zero. K % 16 == 0 for NVFP4; FP8 blocks and
//           groups may be short at the edges
// Graph     capture-safe: no sync, allocation or host read; shapes and pointers are baked
// Scratch   none
// Cost      bytes = n*K (+ scales) + weight + n*N;  flops = 2*n*N*K
#pragma once

#include "ops/operand.h"

namespace lr::ops {

struct LinearArgs {
    ConstView x;           // [n, K]
    ConstView x_scale;     // optional; f32 [n] or [n, ceil K/128], e4m3 [n, K/16]
    ConstView n_live;      // [1] i32
    Weight w;              // [N, K]
    View y;                // [n, N]
    float x_global = 1.0f; // dequant multiplier of NVFP4 or static FP8 activations
    Precision precision = Precision::kModel;

    template <typename Visitor> void visit(Visitor& v) {
        v.in("x", x);
        v.in("x_scale", x_scale);
        v.in("n_live", n_live);
        v.weight("w", w);
        v.out("y", y);
    }
};

Status check(const LinearArgs& args);
Cost cost(const LinearArgs& args);

} // namespace lr::ops
