// SPDX-License-Identifier: Apache-2.0
//
// ops/gdn/recurrent_update.h: one decode step of the gated delta rule, with Q/K norms and gates
// (decode-gdn node 7).
//
// Math      per row and value head h, key head h / (Hv/Hk), with the slot's S [dv, dk]:
//             kn = k / sqrt(sum k^2 + 1e-6);  qn = q / sqrt(sum q^2 + 1e-6) * dk^-0.5
//             alpha = exp(-exp(a_log) * softplus(a + dt_bias));  beta = sigmoid(b)
//             S <- alpha S;  d = beta (v - S kn);  S <- S + d kn^T (fused);  o = S qn
//             softplus(x) = x > 20 ? x : log1p(exp(x))
// Shapes    q, k [n, Hk, dk]   v, o [n, Hv, dv]   b, a [n, Hv]   a_log, dt_bias [Hv]   slot [n]
//           ssm_state [S, Hv, dv, dk];  Hv % Hk == 0, dk % 16 == 0, dv % 16 == 0
// Types     q, k, v, b, a, o bf16 or f32; a_log, dt_bias bf16, f16 or f32; ssm_state
//           f32 or bf16; slot i32
// Rounding  all arithmetic f32; kModel rounds beta to bf16; one rounding when o is stored; a bf16
//           state is rounded when stored, after o was read from the unrounded one
// Order     sums over dk in the fixed tree of cpu/kernels/kernels.h, independent of n
// Aliasing  ssm_state is updated in place; o may be v itself; nothing else overlaps
// Bounds    slot -1 or row >= n_live: padding, o zero, no state touched; duplicate slots are a
//           caller bug
// Graph     capture-safe; n, shapes and pointers are baked, slots and n_live are not
// Scratch   none
// Cost      bytes = inputs + o + 2 * n*Hv*dv*dk * state;  flops = 7*n*Hv*dv*dk (memory bound)
#pragma once

#include "core/status.h"
#include "ops/op.h"

namespace lr::ops {

struct RecurrentUpdateArgs {
    ConstView q;       // [n, Hk, dk]
    ConstView k;       // [n, Hk, dk]
    ConstView v;       // [n, Hv, dv]
    ConstView b;       // [n, Hv]
    ConstView a;       // [n, Hv]
    ConstView a_log;   // [Hv]
    ConstView dt_bias; // [Hv]
    ConstView slot;    // [n] i32
    ConstView n_live;  // [1] i32, optional
    View ssm_state;    // [S, Hv, dv, dk]
    View o;            // [n, Hv, dv]
    Precision precision = Precision::kModel;

    template <typename Visitor> void visit(Visitor& visitor) {
        visitor.in("q", q);
        visitor.in("k", k);
        visitor.in("v", v);
        visitor.in("b", b);
        visitor.in("a", a);
        visitor.in("a_log", a_log);
        visitor.in("dt_bias", dt_bias);
        visitor.in("slot", slot);
        visitor.in("n_live", n_live);
        visitor.state("ssm_state", ssm_state);
        visitor.out("o", o);
    }
};

Status check(const RecurrentUpdateArgs& args);
Cost cost(const RecurrentUpdateArgs& args);

} // namespace lr::ops
