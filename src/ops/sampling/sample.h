// SPDX-License-Identifier: Apache-2.0
//
// ops/sampling/sample.h: the epilogue of a step: one token for each row of logits.
//
// Math      of the ids 0 .. vocab_limit-1 (the padded rest of the vocabulary is never drawn), in
//           this order; l are the row's logits, i an id:
//             bias         z_i = l_i, then z_i += bias_value[j] for each j of the row's bias_range
//                          with bias_id[j] = i
//             repetition   i seen (prompt or generated) and factor != 1:
//                          z_i = z_i > 0 ? z_i / repetition : z_i * repetition
//             frequency    z_i -= frequency * (times generated)
//             presence     z_i -= presence where generated at all
//                          (after a penalty z_i is held within the finite numbers)
//             greedy       temperature <= 0 or NaN: the token is the first in rank, and that is all
//           Rank: larger z first, of equal z (-0 equals 0) the lower id. One rule for every tie.
//             weight       w_i = numerics::softmax_weight((z_i - max z) / temperature), an integer
//             top-k        0 < top_k: the first top_k in rank; the others leave
//             top-p        top_p < 1, W = sum of w of those left: of these, i stays when the sum of
//                          w of those before it in rank is < ceil(f64(top_p) * f64(W)); the first
//                          always stays
//             min-p        min_p > 0: i stays when w_i >= ceil(min(min_p, 1) * 2^40)
//             draw         W = sum of w of those left; the token is the lowest id whose running sum
//                          in id order exceeds numerics::below(counter_bits(seed, stream,
//                          position), W)
//           Off: top_k <= 0, top_p >= 1, min_p <= 0, repetition 1, frequency and presence 0, an
//           empty bias_range. Logits below the largest by more than 28.5 temperatures have w = 0.
//           (Hugging Face and vLLM make the same choices, but keep every id that ties with the
//           k-th; vLLM applies min-p before top-k and top-p.)
// Shapes    logits [m,V]   counts [S,V]   bias_range [m,2]: first, one past the last   bias_id,
//           bias_value [NB]   m_live [1]   everything else [m];
//           1 <= vocab_limit <= V <= 2^23; rows of logits may be strided
// Types     logits, temperature, top_p, min_p, repetition, frequency, presence, bias_value f32;
//           counts u16 (count_tokens.h); seed i64; everything else i32
// Rounding  every operation on z, and z - max and the division by temperature, one f32 rounding;
//           weights exact integers; top-p's limit two f64 roundings
// Order     bias entries in list order; sums of integers have none
// Aliasing  nothing may overlap
// Bounds    a NaN or an infinity below vocab_limit: token -1, status 1, greedy or not (that row
//           alone); rows >= m_live: token -1, status 0, nothing read. count_slot -1: the row has no
//           penalties. bias_id outside 0 .. vocab_limit-1: that entry does nothing. Parameters are
//           not NaN, but for temperature; repetition > 0 (the engine refuses the rest)
// Graph     capture-safe: no sync, allocation or host read; parameters are data
// Scratch   none
// Cost      reads m*V logits (and m*V counts where there are penalties: not in cost); 4*m*V FLOPs
#pragma once

#include "ops/op.h"

namespace lr::ops {

struct SampleArgs {
    ConstView logits;      // [m,V]
    ConstView temperature; // [m]
    ConstView top_k;       // [m]
    ConstView top_p;       // [m]
    ConstView min_p;       // [m]
    ConstView repetition;  // [m]
    ConstView frequency;   // [m]
    ConstView presence;    // [m]
    ConstView count_slot;  // [m]: row of counts, -1 none
    ConstView counts;      // [S,V]
    ConstView bias_range;  // [m,2]
    ConstView bias_id;     // [NB]
    ConstView bias_value;  // [NB]
    ConstView seed;        // [m] i64
    ConstView stream;      // [m]
    ConstView position;    // [m]
    ConstView m_live = {}; // [1]
    View token;            // [m]
    View status;           // [m]: 0 ok, 1 non-finite logits
    std::int32_t vocab_limit = 0;

    template <typename Visitor> void visit(Visitor& v) {
        v.in("logits", logits);
        v.in("temperature", temperature);
        v.in("top_k", top_k);
        v.in("top_p", top_p);
        v.in("min_p", min_p);
        v.in("repetition", repetition);
        v.in("frequency", frequency);
        v.in("presence", presence);
        v.in("count_slot", count_slot);
        v.in("counts", counts);
        v.in("bias_range", bias_range);
        v.in("bias_id", bias_id);
        v.in("bias_value", bias_value);
        v.in("seed", seed);
        v.in("stream", stream);
        v.in("position", position);
        v.in("m_live", m_live);
        v.out("token", token);
        v.out("status", status);
    }
};

Status check(const SampleArgs& args);
Cost cost(const SampleArgs& args);

} // namespace lr::ops
