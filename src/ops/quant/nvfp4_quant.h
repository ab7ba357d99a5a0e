// SPDX-License-Identifier: Apache-2.0
//
// ops/quant/nvfp4_quant.h: activations to E2M1 codes with an E4M3 scale for each 16 channels.
//
// Math      sf = e4m3(G * amax / 6) over 16 channels;  q = e2m1(x / (sf / G)); a block of zeros has
//           q = 0   (G = encode_scale; a reader multiplies by 1/G)
// Shapes    x, q [n,K]   n_live [1]   scale [n,K/16];  K % 16 == 0; rows of x may be strided
// Types     x bf16 or f32; q e2m1 (two codes to a byte, low nibble = even k); scale e4m3;
//           n_live i32
// Rounding  f32 between the two codes; numerics/quantize.h is the definition, to the last bit
// Order     a maximum: no order
// Aliasing  nothing may overlap
// Bounds    rows >= n_live: q and scale zero, x not read
// Graph     capture-safe: no sync, allocation or host read; encode_scale is baked
// Scratch   none
// Cost      each tensor once; 4*n*K FLOPs
#pragma once

#include "ops/op.h"

namespace lr::ops {

struct Nvfp4QuantArgs {
    ConstView x;           // [n,K]
    ConstView n_live = {}; // [1]
    View q;                // [n,K] e2m1
    View scale;            // [n,K/16] e4m3
    float encode_scale = 1.0f;

    template <typename Visitor> void visit(Visitor& v) {
        v.in("x", x);
        v.in("n_live", n_live);
        v.out("q", q);
        v.out("scale", scale);
    }
};

Status check(const Nvfp4QuantArgs& args);
Cost cost(const Nvfp4QuantArgs& args);

} // namespace lr::ops
