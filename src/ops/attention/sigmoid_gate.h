// SPDX-License-Identifier: Apache-2.0
//
// ops/attention/sigmoid_gate.h: the output gate of full attention.
//
// Math      y = o * sigmoid(gate),  sigmoid(g) = 1 / (1 + exp(-g))
// Shapes    o, gate, y [n,C]   n_live [1];  C = Hq*dh; rows of o and gate may be strided
// Types     o, gate, y bf16 or f32; n_live i32
// Rounding  all arithmetic f32; one rounding when y is stored
// Order     no sums
// Aliasing  y may alias o or gate
// Bounds    rows >= n_live: y zero, inputs not read
// Graph     capture-safe: no sync, allocation or host read; n, shapes and pointers are baked
// Scratch   none
// Cost      each tensor once; 5*n*C FLOPs
#pragma once

#include "ops/op.h"

namespace lr::ops {

struct SigmoidGateArgs {
    ConstView o;           // [n,C]
    ConstView gate;        // [n,C]
    ConstView n_live = {}; // [1]
    View y;                // [n,C]

    template <typename Visitor> void visit(Visitor& v) {
        v.in("o", o);
        v.in("gate", gate);
        v.in("n_live", n_live);
        v.out("y", y);
    }
};

Status check(const SigmoidGateArgs& args);
Cost cost(const SigmoidGateArgs& args);

} // namespace lr::ops
