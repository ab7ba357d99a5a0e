// SPDX-License-Identifier: Apache-2.0
//
// ops/attention/qk_norm_rope_gate.h: splits the gated query projection, normalises q and k per
// head, and rotates the first rotary_dim channels of both.
//
// Math      per head, over dh:  u = x * inv * (1 + w),  inv = 1 / sqrt(sum(x^2) / dh + eps)
//           rotary, h = rotary_dim / 2, i in [0,h):  angle = pos * f[i],
//             y[i]   = u[i] cos(angle) - u[i+h] sin(angle)
//             y[i+h] = u[i+h] cos(angle) + u[i] sin(angle);   y[j] = u[j] for j >= rotary_dim
//           f[i] = 1 / theta^(2i / rotary_dim): exponent, power and reciprocal each in f32, as HF
//           does; the angle is the f32 product of pos and f[i], its cos and sin are f32
//           qg holds, head by head, dh channels of q, then dh channels of gate; gate is copied
// Shapes    qg [n,Hq,2dh]   k, k_out [n,Hkv,dh]   positions [n]   n_live [1]   q_norm, k_norm [dh]
//           q [n,Hq,dh]   gate [n,Hq*dh];  rotary_dim even, <= dh; rows of qg and k may be strided
// Types     qg, k, q, gate, k_out bf16 or f32; norms bf16, f16 or f32; positions, n_live i32
// Rounding  all arithmetic f32; kModel: u is rounded to bf16 before the rotation; one rounding when
//           q and k_out are stored; gate has none
// Order     sum over dh in the fixed tree of cpu/rows.h: a function of dh alone
// Aliasing  k_out may alias k; nothing else may overlap
// Bounds    rows >= n_live: q, gate and k_out zero, inputs and positions not read; positions >= 0
// Graph     capture-safe: no sync, allocation or host read; positions are data
// Scratch   none
// Cost      each tensor once; n*(Hq+Hkv)*(5*dh + 3*rotary_dim) FLOPs
#pragma once

#include "ops/op.h"

namespace lr::ops {

struct QkNormRopeGateArgs {
    ConstView qg;          // [n,Hq,2dh]
    ConstView k;           // [n,Hkv,dh]
    ConstView positions;   // [n]
    ConstView n_live = {}; // [1]
    ConstView q_norm;      // [dh]
    ConstView k_norm;      // [dh]
    View q;                // [n,Hq,dh]
    View gate;             // [n,Hq*dh]
    View k_out;            // [n,Hkv,dh]
    float eps = 0.0f;
    float rope_theta = 0.0f;
    std::int32_t rotary_dim = 0;
    Precision precision = Precision::kModel;

    template <typename Visitor> void visit(Visitor& v) {
        v.in("qg", qg);
        v.in("k", k);
        v.in("positions", positions);
        v.in("n_live", n_live);
        v.in("q_norm", q_norm);
        v.in("k_norm", k_norm);
        v.out("q", q);
        v.out("gate", gate);
        v.out("k_out", k_out);
    }
};

Status check(const QkNormRopeGateArgs& args);
Cost cost(const QkNormRopeGateArgs& args);

} // namespace lr::ops
