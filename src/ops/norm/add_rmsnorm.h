// SPDX-License-Identifier: Apache-2.0
//
// ops/norm/add_rmsnorm.h: residual add and zero-centred ("Gemma") RMSNorm of the sum.
//
// Math      s = residual + x   (s = x without a residual);  residual_out = s
//           y = s * inv * (1 + weight),  inv = 1 / sqrt(sum(s^2) / D + eps)
// Shapes    x, residual, residual_out, y [n,D]   n_live [1]   weight [D];  residual and
//           residual_out may each be absent; rows of x and residual may be strided
// Types     x, residual, residual_out, y bf16 or f32; weight bf16, f16 or f32; n_live i32
// Rounding  all arithmetic f32. kModel with kHf: s is rounded to bf16 right after the add, and the
//           norm reads that value, whether or not residual_out is stored. kSeed, or kF32: the norm
//           reads the f32 sum. One rounding when residual_out is stored, one when y is
// Order     sum over D in the fixed tree of cpu/rows.h: a function of D alone
// Aliasing  residual_out may alias residual or x, y may alias x; residual_out and y must differ
// Bounds    rows >= n_live: residual_out and y zero, x and residual not read
// Graph     capture-safe: no sync, allocation or host read; n, shapes and pointers are baked
// Scratch   none
// Cost      each tensor once; 7*n*D FLOPs
//
// ranks > 1: x is this rank's partial sum, and the communicator adds the ranks' partials, in rank
// order, before this formula; the CPU function runs ranks == 1 only.
#pragma once

#include "ops/op.h"

namespace lr::ops {

struct AddRmsnormArgs {
    ConstView x;             // [n,D]
    ConstView residual = {}; // [n,D], optional
    ConstView n_live = {};   // [1]
    ConstView weight;        // [D]
    View residual_out = {};  // [n,D], optional
    View y;                  // [n,D]
    float eps = 0.0f;
    Numerics numerics = Numerics::kHf;
    std::int32_t ranks = 1;
    Precision precision = Precision::kModel;

    template <typename Visitor> void visit(Visitor& v) {
        v.in("x", x);
        v.in("residual", residual);
        v.in("n_live", n_live);
        v.in("weight", weight);
        v.out("residual_out", residual_out);
        v.out("y", y);
    }
};

Status check(const AddRmsnormArgs& args);
Cost cost(const AddRmsnormArgs& args);

} // namespace lr::ops
