// SPDX-License-Identifier: Apache-2.0
//
// ops/norm/zero_fill.h: zeroes a buffer that later nodes write only in part.
//
// Math      y = 0
// Shapes    y: any shape, rows may be strided; the gaps between rows are left alone
// Types     any
// Rounding  none: all bits zero
// Order     no sums
// Aliasing  one tensor only
// Bounds    every row, live or not
// Graph     capture-safe
// Scratch   none
// Cost      writes y once; no FLOPs
#pragma once

#include "ops/op.h"

namespace lr::ops {

struct ZeroFillArgs {
    View y; // any shape

    template <typename Visitor> void visit(Visitor& v) { v.out("y", y); }
};

Status check(const ZeroFillArgs& args);
Cost cost(const ZeroFillArgs& args);

} // namespace lr::ops
