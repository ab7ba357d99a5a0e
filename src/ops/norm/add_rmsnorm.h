// SPDX-License-Identifier: Apache-2.0
//
// ops/norm/add_rmsnorm.h: residual add and zero-centred ("Gemma") RMSNorm of the sum.
//
// Math      s = residual + x   (s = x without a residual);  residual_out = s
//           ranks > 1: x is a partial sum, and (x of rank 0 + x of rank 1 + ...) stands for it
//           y = s * inv * (1 + weight),  inv = 1 / sqrt(sum(s^2) / D + eps)
// Shapes    x, residual, residual_out, y [n,D]   n_live [1]   weight [D];  residual and
//           residual_out may each be absent; rows of x and residual may be strided
// Types     x, residual, residual_out, y bf16 or f32; weight bf16, f16 or f32; n_live i32
// Rounding  all arithmetic f32, the sum over ranks too. kModel with kHf: s is rounded to bf16 right
// after the add, and the
//           norm reads that value, whether or not residual_out is stored. kSeed, or kF32: the norm
//           reads the f32 sum. One rounding when residual_out is stored, one when y is
// Order     sum over D in the fixed tree of cpu/rows.h: a function of D alone; ranks ascend
// Aliasing  residual_out may alias residual or x, y may alias x; residual_out and y must differ.
//           ranks > 1: nothing may alias x, which the other ranks read
// Bounds    rows >= n_live: residual_out and y zero, x and residual not read
// Graph     capture-safe: no sync, allocation or host read; n, shapes and pointers are baked
// Scratch   none
// Cost      each tensor once, x once a rank; (6+ranks)*n*D FLOPs
//
// ranks > 1: the caller sets `peers` before a launch and sees to it that every rank has written its
// x before, and that none overwrites it until all have read.
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
    RankGroup group = RankGroup::kTensor;
    PeerRows peers{}; // ranks > 1: each rank's x, its own too; dtype and stride as x has them
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
