// SPDX-License-Identifier: Apache-2.0
//
// ops/experts/shared_gate_merge.h: adds the shared expert, scaled by its gate, to the routed sum.
//
// Math      eta[t] = sigmoid(m[t] . gate_weight);  y[t, d] = routed[t, d] + eta[t] * shared[t, d]
// Shapes    m,shared,routed [n,D]  n_live [1]  gate_weight [1,D]  y [n,D]
// Types     m,shared,routed,y bf16 f32; gate_weight bf16 f16 f32; n_live i32
// Rounding  dot, sigmoid and merge f32, not contracted; one round-to-nearest-even when y is bf16
// Order     cpu/rows.h dot
// Aliasing  y may be shared or routed
// Bounds    rows >= n_live: nothing read, y zero
// Graph     capture-safe: no sync, allocation or host read
// Scratch   none
// Cost      bytes = 4*n*D + D;  flops = 4*n*D
#pragma once

#include "ops/operand.h"

namespace lr::ops {

struct SharedGateMergeArgs {
    ConstView m;           // [n, D], input of the FFN
    ConstView shared;      // [n, D], output of the shared expert
    ConstView routed;      // [n, D], finalised routed sum
    ConstView n_live;      // [1] i32
    ConstView gate_weight; // [1, D]
    View y;                // [n, D]

    template <typename Visitor> void visit(Visitor& v) {
        v.in("m", m);
        v.in("shared", shared);
        v.in("routed", routed);
        v.in("n_live", n_live);
        v.in("gate_weight", gate_weight);
        v.out("y", y);
    }
};

Status check(const SharedGateMergeArgs& args);
Cost cost(const SharedGateMergeArgs& args);

} // namespace lr::ops
