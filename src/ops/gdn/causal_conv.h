// SPDX-License-Identifier: Apache-2.0
//
// ops/gdn/causal_conv.h: causal convolution of 4 taps and SiLU over packed sequences (prefill-gdn
// node 6).
//
// Math      per sequence and channel, t counted from the sequence's first row of this batch:
//             y[t] = SiLU(w[0] x[t-3] + w[1] x[t-2] + w[2] x[t-1] + w[3] x[t])
//           x[-3..-1] are the slot's stored inputs, oldest first, or zero where mask is 0;
//           the state becomes the last three entries of (x[-3], x[-2], x[-1], x[0], ...)
// Shapes    qkv [n, C]   cu_seqlens [B+1]   slot, mask [B]   conv [C, 4]   conv_state [S, C, 3]
//           y [n, C]
// Types     qkv, y bf16 or f32; conv_state as qkv; conv plain; cu_seqlens, slot, mask i32
// Rounding  products, sum and SiLU f32, one rounding when y is stored; the state holds raw inputs
// Order     taps oldest first; the same bits as ops/gdn/unpack_conv.h and wherever a piece begins
// Aliasing  conv_state is updated in place; nothing overlaps
// Bounds    slot -1: the sequence is unused, its rows (if any) get y zero and no state is touched;
//           rows >= n_live: y zero; a sequence without rows leaves its state alone
// Graph     capture-safe; the contents of cu_seqlens, slot, mask and n_live are device data
// Scratch   none
// Cost      bytes = qkv + y + conv + 2 * B*C*3;  flops = 12*n*C
#pragma once

#include "core/status.h"
#include "ops/op.h"
#include "ops/weight.h"

namespace lr::ops {

struct CausalConvArgs {
    ConstView qkv;        // [n, C], row-strided allowed
    ConstView cu_seqlens; // [B+1] i32, first row of each sequence
    ConstView slot;       // [B] i32
    ConstView mask;       // [B] i32, 1 = continue from the stored state
    ConstView n_live;     // [1] i32, optional
    Weight conv;          // [C, 4]
    View conv_state;      // [S, C, 3]
    View y;               // [n, C]

    template <typename Visitor> void visit(Visitor& visitor) {
        visitor.in("qkv", qkv);
        visitor.in("cu_seqlens", cu_seqlens);
        visitor.in("slot", slot);
        visitor.in("mask", mask);
        visitor.in("n_live", n_live);
        visitor.weight("conv", conv);
        visitor.state("conv_state", conv_state);
        visitor.out("y", y);
    }
};

Status check(const CausalConvArgs& args);
Cost cost(const CausalConvArgs& args);

} // namespace lr::ops
