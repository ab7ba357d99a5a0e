// SPDX-License-Identifier: Apache-2.0
//
// ops/sampling/token_logprobs.h: how likely the model finds a token of each row, and which it finds
// likeliest. Of the raw logits: no bias, penalty, temperature or filter of sample.h has a part.
//
// Math      over the ids 0 .. vocab_limit-1 of a row of logits l:
//             logprob(i) = (l_i - max l) - log(sum_j exp(l_j - max l))
//           for the row's id: target where it is >= 0, else token (the drawn one). Its rank is its
//           place, from 1, in the order of l, largest first, of equal l the lower id first.
//           id tells which it was. top_id, top_logprob: the first wanted[row] of that order, and
//           theirs
// Shapes    logits [m,V]   wanted, target, token, status [m]   m_live [1]   id, rank, logprob [m]
//           top_id, top_logprob [m,kMaxTopLogprobs];   1 <= vocab_limit <= V
// Types     logits f32; logprob, top_logprob f64; everything else i32
// Rounding  f64 from the logits on
// Order     sum in 16 lanes of stride 16, then halves; the tail goes to lane 0 on
// Aliasing  nothing may overlap
// Bounds    wanted -1: nothing of the row's logits is read. Such a row, one with status != 0 and
//           rows >= m_live: id -1, rank 0, logprob 0. Entries beyond wanted (or beyond vocab_limit
//           ids): top_id -1, top_logprob 0. wanted in -1 .. kMaxTopLogprobs, target in -1 ..
//           vocab_limit-1 (the engine refuses the rest)
// Graph     capture-safe: no sync, allocation or host read; what is wanted is data
// Scratch   none
// Cost      of a step that wants nothing: the tensors but logits, no FLOPs; each row that wants
//           something reads V logits and makes 5*V FLOPs more
#pragma once

#include "ops/op.h"

namespace lr::ops {

inline constexpr std::int32_t kMaxTopLogprobs = 20;

struct TokenLogprobsArgs {
    ConstView logits;      // [m,V]
    ConstView wanted;      // [m]: -1 nothing, else how many of the likeliest
    ConstView target;      // [m]: -1 the drawn token
    ConstView token;       // [m]
    ConstView status;      // [m]
    ConstView m_live = {}; // [1]
    View id;               // [m]
    View rank;             // [m]
    View logprob;          // [m]
    View top_id;           // [m,20]
    View top_logprob;      // [m,20]
    std::int32_t vocab_limit = 0;

    template <typename Visitor> void visit(Visitor& v) {
        v.in("logits", logits);
        v.in("wanted", wanted);
        v.in("target", target);
        v.in("token", token);
        v.in("status", status);
        v.in("m_live", m_live);
        v.out("id", id);
        v.out("rank", rank);
        v.out("logprob", logprob);
        v.out("top_id", top_id);
        v.out("top_logprob", top_logprob);
    }
};

Status check(const TokenLogprobsArgs& args);
Cost cost(const TokenLogprobsArgs& args);

} // namespace lr::ops
