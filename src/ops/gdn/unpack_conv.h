// SPDX-License-Identifier: Apache-2.0
//
// ops/gdn/unpack_conv.h: one decode step of the causal convolution, and the unpacking of both
// projections (decode-gdn node 6).
//
// Math      with x the first C columns of qkvz and (s0, s1, s2) the stored inputs, oldest first:
//             u[c] = SiLU(w[c,0] s0[c] + w[c,1] s1[c] + w[c,2] s2[c] + w[c,3] x[c])
//             q | k | v = u;  z = the last Hv*dv columns;  b | a = ba;  state <- (s1, s2, x)
//             SiLU(x) = x / (1 + exp(-x));  z, b and a do not pass through the convolution
// Shapes    qkvz [n, C + Hv*dv], C = 2*Hk*dk + Hv*dv, columns q | k | v | z   ba [n, 2*Hv]
//           slot [n]   conv [C, 4]   conv_state [S, C, 3]   q, k [n, Hk, dk]   v, z [n, Hv, dv]
//           b, a [n, Hv]
// Types     qkvz, ba and outputs bf16 or f32; conv_state as qkvz; conv plain; slot i32
// Rounding  products, sum and SiLU f32, one rounding when q, k, v are stored; the state holds the
//           raw inputs, unchanged
// Order     taps oldest first
// Aliasing  conv_state is updated in place; nothing overlaps
// Bounds    slot -1 or row >= n_live: padding, outputs zero, no state touched; duplicate slots are
//           a caller bug
// Graph     capture-safe; n, shapes and pointers are baked, slots and n_live are not
// Scratch   none
// Cost      bytes = qkvz + ba + outputs + conv + 2 * n*C*3;  flops = 12*n*C
#pragma once

#include "core/status.h"
#include "ops/op.h"
#include "ops/weight.h"

namespace lr::ops {

struct UnpackConvArgs {
    ConstView qkvz;   // [n, C + Hv*dv], row-strided allowed
    ConstView ba;     // [n, 2*Hv], row-strided allowed
    ConstView slot;   // [n] i32
    ConstView n_live; // [1] i32, optional
    Weight conv;      // [C, 4]
    View conv_state;  // [S, C, 3]
    View q;           // [n, Hk, dk]
    View k;           // [n, Hk, dk]
    View v;           // [n, Hv, dv]
    View z;           // [n, Hv, dv]
    View b;           // [n, Hv]
    View a;           // [n, Hv]

    template <typename Visitor> void visit(Visitor& visitor) {
        visitor.in("qkvz", qkvz);
        visitor.in("ba", ba);
        visitor.in("slot", slot);
        visitor.in("n_live", n_live);
        visitor.weight("conv", conv);
        visitor.state("conv_state", conv_state);
        visitor.out("q", q);
        visitor.out("k", k);
        visitor.out("v", v);
        visitor.out("z", z);
        visitor.out("b", b);
        visitor.out("a", a);
    }
};

Status check(const UnpackConvArgs& args);
Cost cost(const UnpackConvArgs& args);

} // namespace lr::ops
