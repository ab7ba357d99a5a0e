// SPDX-License-Identifier: Apache-2.0
//
// ops/quant/fp8_quant.h: activations to E4M3 codes, with a scale for each token, for each group of
// 128 channels, or one static scale.
//
// Math      s = max(amax |x|, tiny) / 448 over the row (group 0) or over 128 channels (group 128);
//           s = static_scale when scale is absent;  q = e4m3(x / s), saturating
// Shapes    x, q [n,K]   n_live [1]   scale [n] (group 0), [n,ceil(K/128)] (group 128, the last
//           group may be shorter) or absent (static: group 0 and static_scale > 0); rows of x may
//           be strided
// Types     x bf16 or f32; q e4m3; scale f32; n_live i32
// Rounding  s, the dequant multiplier, in f32; the quotient in f32, then one rounding to E4M3
//           (numerics/quantize.h is the definition)
// Order     a maximum: no order
// Aliasing  nothing may overlap
// Bounds    rows >= n_live: q and scale zero, x not read; a zero row has q = 0 and s = tiny/448
// Graph     capture-safe: no sync, allocation or host read; the static scale is baked
// Scratch   none
// Cost      each tensor once; 3*n*K FLOPs
#pragma once

#include "ops/op.h"

namespace lr::ops {

struct Fp8QuantArgs {
    ConstView x;           // [n,K]
    ConstView n_live = {}; // [1]
    View q;                // [n,K] e4m3
    View scale = {};       // [n] or [n,ceil(K/128)] f32; absent: static
    std::int32_t group = 0;
    float static_scale = 0.0f; // dequant multiplier

    template <typename Visitor> void visit(Visitor& v) {
        v.in("x", x);
        v.in("n_live", n_live);
        v.out("q", q);
        v.out("scale", scale);
    }
};

Status check(const Fp8QuantArgs& args);
Cost cost(const Fp8QuantArgs& args);

} // namespace lr::ops
