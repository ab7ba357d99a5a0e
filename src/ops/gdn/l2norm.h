// SPDX-License-Identifier: Apache-2.0
//
// ops/gdn/l2norm.h: unit length for each head of q or k (prefill-gdn nodes 9 and 10).
//
// Math      per row and head: y = x / sqrt(sum x^2 + 1e-6); a sum, not a mean; no dk^-0.5 (the
//           output stage applies it)
// Shapes    x, y [n, H, d]
// Types     bf16 or f32
// Rounding  all arithmetic f32, one rounding when y is stored
// Order     sum of squares in the fixed tree of cpu::dot
// Aliasing  y may be x itself
// Bounds    row >= n_live: y zero; a zero head stays zero
// Graph     capture-safe; n_live is read on the device
// Scratch   none
// Cost      bytes = x + y;  flops = 3*n*H*d
#pragma once

#include "core/status.h"
#include "ops/op.h"

namespace lr::ops {

// The constant under the root, for q and k, in prefill and decode (not the model's rms_norm_eps).
inline constexpr float kL2NormEps = 1e-6f;

struct L2normArgs {
    ConstView x;      // [n, H, d], row-strided allowed
    ConstView n_live; // [1] i32, optional
    View y;           // [n, H, d]

    template <typename Visitor> void visit(Visitor& visitor) {
        visitor.in("x", x);
        visitor.in("n_live", n_live);
        visitor.out("y", y);
    }
};

Status check(const L2normArgs& args);
Cost cost(const L2normArgs& args);

} // namespace lr::ops
