// SPDX-License-Identifier: Apache-2.0
//
// ops/experts/experts_gate_up.h: the first half of the routed experts: gate and up projection of
// each live row by its expert, SwiGLU, and the quantisation of the result where f is codes.
//
// Math      for e in [0,L), r in [start[e], end[e]), t = row_map[r] / per_token:
//             g[i] = x[t] . w[e, i],  u[i] = x[t] . w[e, I+i],  f[r, i] = silu(g[i]) * u[i]
// Shapes    x [n,D]  x_scale by format  start,end [L]  row_map [rows]  w [L,2I,D], gate rows first,
//           1 part (gate|up) or 2 parts (gate, up) for each expert  f [rows,I]  f_scale by format
// Types     x, x_scale, w as ops/operand.h pairs them; f bf16 f32, or codes e4m3 e2m1 with f_scale
//           f32 [rows], f32 [rows,ceil I/128], e4m3 [rows,I/16], or none (static: code of F /
//           f_global)
// Rounding  dots and scales f32 (ops/operand.h). kModel: g and u rounded to bf16, as a bf16 GEMM
//           stores them; F = bf16(silu(g) * u), one rounding; codes are formed from that F.
//           kF32: no rounding but f's own format
// Order     cpu/rows.h dot: a row depends on its token and its expert only
// Aliasing  outputs overlap nothing
// Bounds    rows outside [start[e], end[e]): row_map and f neither read nor written
// Graph     capture-safe: no sync, allocation or host read; counts change between replays
// Scratch   none
// Cost      bytes = read rows of x + live experts' weights + live rows of f;
//           flops = 2 * live rows * 2I * D  (live rows and experts: ExpertLoad)
#pragma once

#include "ops/operand.h"

namespace lr::ops {

struct ExpertsGateUpArgs {
    ConstView x;                // [n, D]
    ConstView x_scale;          // optional
    ConstView start;            // [L] i32
    ConstView end;              // [L] i32
    ConstView row_map;          // [rows] i32
    Weight w;                   // [L, 2I, D]
    View f;                     // [rows, I]
    View f_scale;               // optional
    std::int32_t per_token = 1; // K: token of a row = row_map / K
    float x_global = 1.0f;      // dequant multiplier of NVFP4 or static FP8 x
    float f_global = 1.0f; // NVFP4: encode multiplier G of f; static FP8: dequant multiplier of f
    Precision precision = Precision::kModel;
    ExpertLoad load; // for cost alone

    template <typename Visitor> void visit(Visitor& v) {
        v.in("x", x);
        v.in("x_scale", x_scale);
        v.in("start", start);
        v.in("end", end);
        v.in("row_map", row_map);
        v.weight("w", w);
        v.out("f", f);
        v.out("f_scale", f_scale);
    }
};

Status check(const ExpertsGateUpArgs& args);
Cost cost(const ExpertsGateUpArgs& args);

} // namespace lr::ops
