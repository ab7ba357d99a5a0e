// SPDX-License-Identifier: Apache-2.0
//
// ops/experts/silu_mul.h: SwiGLU's activation, of the shared expert and of dense layers.
//
// Math      y[t, i] = silu(gate_up[t, i]) * gate_up[t, I + i],  silu(g) = g / (1 + exp(-g))
// Shapes    gate_up [n,2I], gate first  n_live [1]  y [n,I]
// Types     gate_up,y bf16 f32; n_live i32
// Rounding  f32; one round-to-nearest-even when y is bf16
// Order     elementwise
// Aliasing  y overlaps nothing
// Bounds    rows >= n_live: gate_up not read, y zero
// Graph     capture-safe: no sync, allocation or host read
// Scratch   none
// Cost      bytes = 3*n*I;  flops = 5*n*I
#pragma once

#include "ops/operand.h"

namespace lr::ops {

struct SiluMulArgs {
    ConstView gate_up; // [n, 2I]
    ConstView n_live;  // [1] i32
    View y;            // [n, I]

    template <typename Visitor> void visit(Visitor& v) {
        v.in("gate_up", gate_up);
        v.in("n_live", n_live);
        v.out("y", y);
    }
};

Status check(const SiluMulArgs& args);
Cost cost(const SiluMulArgs& args);

} // namespace lr::ops
