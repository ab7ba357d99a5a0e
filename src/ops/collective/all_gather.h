// SPDX-License-Identifier: Apache-2.0
//
// ops/collective/all_gather.h: every rank's columns, side by side.
//
// Math      y[:, r*N .. (r+1)*N) = x of rank r
// Shapes    x [n,N]   y [n,ranks*N]
// Types     x, y bf16 or f32, equal
// Rounding  none
// Order     rank order 0, 1, ...
// Aliasing  y may alias x when ranks == 1; nothing else may overlap
// Bounds    every row is moved; dead rows are zero because they are zero in x
// Graph     capture-safe; with one rank and y aliasing x the node is no launch
// Scratch   the communicator's
// Cost      x and y once; nothing at all for one rank in place
//
// The CPU function runs ranks == 1 only, as a copy; of several ranks comm::Communicator runs it.
#pragma once

#include "ops/op.h"

namespace lr::ops {

struct AllGatherArgs {
    ConstView x; // [n,N]
    View y;      // [n,ranks*N]
    std::int32_t ranks = 1;
    RankGroup group = RankGroup::kTensor; // as in all_reduce

    template <typename Visitor> void visit(Visitor& v) {
        v.in("x", x);
        v.out("y", y);
    }
};

Status check(const AllGatherArgs& args);
Cost cost(const AllGatherArgs& args);

} // namespace lr::ops
