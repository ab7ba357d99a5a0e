// SPDX-License-Identifier: Apache-2.0
//
// ops/sampling/sample.h: the epilogue of a step: one token for each row of logits.
//
// Math      ids 0 .. vocab_limit-1 only (the padded rest of the vocabulary is masked), l = logits
//           temperature <= 0 or NaN: the largest l, lowest id on ties
//           else e_i = exp((l_i - max l) / T);  u = numerics::counter_uniform(seed, 0, position) in
//           [0,1);  token = first id whose running sum of e exceeds u * (sum of e)
// Shapes    logits [m,V]   temperature, seed, position [m]   m_live [1]   token, status [m];
//           1 <= vocab_limit <= V; rows of logits may be strided
// Types     logits, temperature f32; seed i64; position, m_live, token, status i32
// Rounding  e in f32, running sum in f64
// Order     running sum in id order
// Aliasing  nothing may overlap
// Bounds    a NaN or an infinity below vocab_limit: token -1, status 1, greedy or not (that row
//           alone); rows >= m_live: token -1, status 0, nothing read
// Graph     capture-safe: no sync, allocation or host read; parameters are data
// Scratch   none
// Cost      reads m*V logits; 4*m*V FLOPs
#pragma once

#include "ops/op.h"

namespace lr::ops {

struct SampleArgs {
    ConstView logits;      // [m,V]
    ConstView temperature; // [m]
    ConstView seed;        // [m] i64
    ConstView position;    // [m]
    ConstView m_live = {}; // [1]
    View token;            // [m]
    View status;           // [m]: 0 ok, 1 non-finite logits
    std::int32_t vocab_limit = 0;

    template <typename Visitor> void visit(Visitor& v) {
        v.in("logits", logits);
        v.in("temperature", temperature);
        v.in("seed", seed);
        v.in("position", position);
        v.in("m_live", m_live);
        v.out("token", token);
        v.out("status", status);
    }
};

Status check(const SampleArgs& args);
Cost cost(const SampleArgs& args);

} // namespace lr::ops
