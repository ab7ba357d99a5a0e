// SPDX-License-Identifier: Apache-2.0
//
// ops/gdn/qkv_split.h: cuts the convolved channels into q, k and v (prefill-gdn node 7).
//
// Math      q | k | v = x, head after head
// Shapes    x [n, C], C = 2*Hk*dk + Hv*dv   q, k [n, Hk, dk]   v [n, Hv, dv]
// Types     bf16 or f32; outputs as x
// Rounding  none
// Order     elementwise
// Aliasing  nothing overlaps
// Bounds    row >= n_live: outputs zero
// Graph     capture-safe; n_live is read on the device
// Scratch   none
// Cost      bytes = 2 * n*C elements;  flops = 0
#pragma once

#include "core/status.h"
#include "ops/op.h"

namespace lr::ops {

struct QkvSplitArgs {
    ConstView x;      // [n, C], row-strided allowed
    ConstView n_live; // [1] i32, optional
    View q;           // [n, Hk, dk]
    View k;           // [n, Hk, dk]
    View v;           // [n, Hv, dv]

    template <typename Visitor> void visit(Visitor& visitor) {
        visitor.in("x", x);
        visitor.in("n_live", n_live);
        visitor.out("q", q);
        visitor.out("k", k);
        visitor.out("v", v);
    }
};

Status check(const QkvSplitArgs& args);
Cost cost(const QkvSplitArgs& args);

} // namespace lr::ops
