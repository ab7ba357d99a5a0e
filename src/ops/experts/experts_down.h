// SPDX-License-Identifier: Apache-2.0
//
// ops/experts/experts_down.h: the second half of the routed experts: each live row's down
// projection by its expert.
//
// Math      for e in [0,L), r in [start[e], end[e]):  z[r, d] = f[r] . w[e, d]
// Shapes    f [rows,I]  f_scale by format  start,end [L]  w [L,D,I], 1 part for each expert
//           z [rows,D]
// Types     f, f_scale, w as ops/operand.h pairs them; start,end i32; z bf16 f32
// Rounding  dots and scales f32 (ops/operand.h); one round-to-nearest-even when z is bf16
// Order     cpu/rows.h dot: a row depends on its row of f and its expert only
// Aliasing  z overlaps nothing
// Bounds    rows outside [start[e], end[e]): f not read, z not written
// Graph     capture-safe: no sync, allocation or host read; counts change between replays
// Scratch   none
// Cost      bytes = live rows of f and z + live experts' weights;  flops = 2 * live rows * D * I
//           (live rows and experts: ExpertLoad)
#pragma once

#include "ops/operand.h"

namespace lr::ops {

struct ExpertsDownArgs {
    ConstView f;           // [rows, I]
    ConstView f_scale;     // optional
    ConstView start;       // [L] i32
    ConstView end;         // [L] i32
    Weight w;              // [L, D, I]
    View z;                // [rows, D]
    float f_global = 1.0f; // dequant multiplier of NVFP4 or static FP8 f
    Precision precision = Precision::kModel;
    ExpertLoad load; // for cost alone

    template <typename Visitor> void visit(Visitor& v) {
        v.in("f", f);
        v.in("f_scale", f_scale);
        v.in("start", start);
        v.in("end", end);
        v.weight("w", w);
        v.out("z", z);
    }
};

Status check(const ExpertsDownArgs& args);
Cost cost(const ExpertsDownArgs& args);

} // namespace lr::ops
