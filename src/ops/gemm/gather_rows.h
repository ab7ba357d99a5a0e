// SPDX-License-Identifier: Apache-2.0
//
// ops/gemm/gather_rows.h: copies chosen rows, such as the last row of each sequence before lm_head.
//
// Math      y[i] = x[rows[i]];  0 where rows[i] == -1
// Shapes    x [n,D]  rows [m]  y [m,D]
// Types     x any dtype of 8 bits or more; rows i32; y the dtype of x
// Rounding  none: bits are copied
// Order     none
// Aliasing  y overlaps nothing
// Bounds    rows[i] in [-1, n); anything else is a caller bug. Rows of x that no entry names are
//           not read
// Graph     capture-safe: no sync, allocation or host read; contents of rows may change
// Scratch   none
// Cost      bytes = 2*m*D + 4*m;  flops = 0
#pragma once

#include "ops/operand.h"

namespace lr::ops {

struct GatherRowsArgs {
    ConstView x;    // [n, D]
    ConstView rows; // [m] i32, -1 = zero row
    View y;         // [m, D]

    template <typename Visitor> void visit(Visitor& v) {
        v.in("x", x);
        v.in("rows", rows);
        v.out("y", y);
    }
};

Status check(const GatherRowsArgs& args);
Cost cost(const GatherRowsArgs& args);

} // namespace lr::ops
