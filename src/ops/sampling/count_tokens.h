// SPDX-License-Identifier: Apache-2.0
//
// ops/sampling/count_tokens.h: what each slot's sequence has seen, for the penalties of sample.h.
//
// Math      for each row r < n_live, c = the entry counts[slot[sequence[r]], ids[r]]:
//           generated[r] == 0: kPromptToken is set in c, else the low 15 bits of c grow by one and
//           stay at kMaxTokenCount
// Shapes    ids, generated, sequence [n]   slot [B]   n_live [1]   counts [S,V]
// Types     counts u16; everything else i32
// Rounding  none
// Order     none: the outcome is the same in every order
// Aliasing  counts updated in place; nothing may overlap
// Bounds    rows >= n_live, sequence or slot -1: nothing is read or written. Ids and the other
//           numbers are in range (the engine refuses the rest)
// Graph     capture-safe: no sync, allocation or host read
// Scratch   none
// Cost      n entries of counts read and written, the index tensors read; no FLOPs
#pragma once

#include "ops/op.h"

namespace lr::ops {

// An entry of counts: whether the prompt holds the token, and how often it was generated.
inline constexpr std::uint16_t kPromptToken = 0x8000;
inline constexpr std::uint16_t kMaxTokenCount = 0x7FFF;

struct CountTokensArgs {
    ConstView ids;         // [n]
    ConstView generated;   // [n]: 0 a token of the prompt
    ConstView sequence;    // [n]: entry of slot, -1 padding
    ConstView slot;        // [B]: -1 padding
    ConstView n_live = {}; // [1]
    View counts;           // [S,V]

    template <typename Visitor> void visit(Visitor& v) {
        v.in("ids", ids);
        v.in("generated", generated);
        v.in("sequence", sequence);
        v.in("slot", slot);
        v.in("n_live", n_live);
        v.state("counts", counts);
    }
};

Status check(const CountTokensArgs& args);
Cost cost(const CountTokensArgs& args);

} // namespace lr::ops
