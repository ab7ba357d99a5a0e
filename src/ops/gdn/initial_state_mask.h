// SPDX-License-Identifier: Apache-2.0
//
// ops/gdn/initial_state_mask.h: which sequences continue from their stored state (prefill-gdn
// node 5).
//
// Math      mask[b] = prefix_len[b] > 0 ? 1 : 0
// Shapes    prefix_len [B]   mask [B]
// Types     i32
// Rounding  none
// Order     elementwise
// Aliasing  mask may be prefix_len itself
// Bounds    an unused sequence has prefix_len 0 and gets 0
// Graph     capture-safe
// Scratch   none
// Cost      bytes = 8*B;  flops = 0
#pragma once

#include "core/status.h"
#include "ops/op.h"

namespace lr::ops {

struct InitialStateMaskArgs {
    ConstView prefix_len; // [B] i32, tokens already in the state
    View mask;            // [B] i32

    template <typename Visitor> void visit(Visitor& visitor) {
        visitor.in("prefix_len", prefix_len);
        visitor.out("mask", mask);
    }
};

Status check(const InitialStateMaskArgs& args);
Cost cost(const InitialStateMaskArgs& args);

} // namespace lr::ops
