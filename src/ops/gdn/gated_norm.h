// SPDX-License-Identifier: Apache-2.0
//
// ops/gdn/gated_norm.h: RMS norm of each value head, times the output gate (decode-gdn node 8,
// prefill-gdn node 18).
//
// Math      per row and head: y = o * inv * w * z * sigmoid(z), inv = 1 / sqrt(mean(o^2) + eps);
//           w multiplies as it is (not 1 + w), the norm comes before the gate
// Shapes    o, z [n, Hv, dv]   weight [dv]   y [n, Hv*dv]
// Types     o, z, y bf16 or f32; weight bf16, f16 or f32
// Rounding  all arithmetic f32, one rounding when y is stored
// Order     sum of squares in the fixed tree of cpu::dot; factors multiplied left to right
// Aliasing  y may be o itself; nothing else overlaps
// Bounds    row >= n_live: y zero
// Graph     capture-safe; n_live is read on the device
// Scratch   none
// Cost      bytes = o + z + y + weight;  flops = 9*n*Hv*dv
#pragma once

#include "core/status.h"
#include "ops/op.h"

namespace lr::ops {

struct GatedNormArgs {
    ConstView o;      // [n, Hv, dv]
    ConstView z;      // [n, Hv, dv], row-strided allowed
    ConstView n_live; // [1] i32, optional
    ConstView weight; // [dv]
    View y;           // [n, Hv*dv]
    float eps = 1e-6f;

    template <typename Visitor> void visit(Visitor& visitor) {
        visitor.in("o", o);
        visitor.in("z", z);
        visitor.in("n_live", n_live);
        visitor.in("weight", weight);
        visitor.out("y", y);
    }
};

Status check(const GatedNormArgs& args);
Cost cost(const GatedNormArgs& args);

} // namespace lr::ops
