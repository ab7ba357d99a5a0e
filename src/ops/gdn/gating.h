// SPDX-License-Identifier: Apache-2.0
//
// ops/gdn/gating.h: the decay and write strength of each value head (prefill-gdn node 8).
//
// Math      g = -exp(a_log) * softplus(a + dt_bias);  beta = sigmoid(b);  b | a = ba
//           softplus(x) = x > 20 ? x : log1p(exp(x))
// Shapes    ba [n, 2*Hv]   a_log, dt_bias [Hv]   g, beta [n, Hv]
// Types     ba bf16 or f32; a_log, dt_bias bf16, f16 or f32; g, beta f32
// Rounding  f32; kModel rounds beta to bf16 before it is stored as f32; g is never rounded
// Order     elementwise; the same bits as the gates inside ops/gdn/recurrent_update.h
// Aliasing  nothing overlaps
// Bounds    row >= n_live: g and beta zero
// Graph     capture-safe; n_live is read on the device
// Scratch   none
// Cost      bytes = ba + a_log + dt_bias + g + beta;  flops = 8*n*Hv
#pragma once

#include "core/status.h"
#include "ops/op.h"

namespace lr::ops {

struct GatingArgs {
    ConstView ba;      // [n, 2*Hv], row-strided allowed
    ConstView a_log;   // [Hv]
    ConstView dt_bias; // [Hv]
    ConstView n_live;  // [1] i32, optional
    View g;            // [n, Hv] f32
    View beta;         // [n, Hv] f32
    Precision precision = Precision::kModel;

    template <typename Visitor> void visit(Visitor& visitor) {
        visitor.in("ba", ba);
        visitor.in("a_log", a_log);
        visitor.in("dt_bias", dt_bias);
        visitor.in("n_live", n_live);
        visitor.out("g", g);
        visitor.out("beta", beta);
    }
};

Status check(const GatingArgs& args);
Cost cost(const GatingArgs& args);

} // namespace lr::ops
