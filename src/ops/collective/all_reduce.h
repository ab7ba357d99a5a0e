// SPDX-License-Identifier: Apache-2.0
//
// ops/collective/all_reduce.h: the sum of a group's partial rows.
//
// Math      y = sum over ranks of x
// Shapes    x, y [n,D]   n_live [1]
// Types     x, y bf16 or f32, equal; n_live i32
// Rounding  f32 sums, one rounding when y is stored; none for one rank
// Order     rank order 0, 1, ...
// Aliasing  y may alias x
// Bounds    rows >= n_live: y zero, x not read
// Graph     capture-safe; with one rank and y aliasing x the node is no launch
// Scratch   none for one rank; else the communicator's
// Cost      each tensor once; (ranks-1)*n*D FLOPs; nothing at all for one rank in place
//
// The CPU function runs ranks == 1 only, as a copy; of several ranks comm::Communicator runs it.
#pragma once

#include "ops/op.h"

namespace lr::ops {

struct AllReduceArgs {
    ConstView x;           // [n,D]
    ConstView n_live = {}; // [1]
    View y;                // [n,D]
    std::int32_t ranks = 1;
    RankGroup group = RankGroup::kTensor; // which ranks; of one there is no difference

    template <typename Visitor> void visit(Visitor& v) {
        v.in("x", x);
        v.in("n_live", n_live);
        v.out("y", y);
    }
};

Status check(const AllReduceArgs& args);
Cost cost(const AllReduceArgs& args);

} // namespace lr::ops
