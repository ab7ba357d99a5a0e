// SPDX-License-Identifier: Apache-2.0
//
// comm/expert_layout.h: tokens that travel to the rank that owns their expert, and how they lie
// there. Letters: W ranks, L experts a rank (expert e belongs to rank e / L), K slots a token, n
// this rank's tokens, D width.
//
//   expert-major  [L,R,D]: the rows of one expert lie together, one row for each (token, slot) that
//                 chose it. The result has the same shape; the token's own rank weighs and adds.
//   rank-major    [W,C,D]: the tokens of one source rank lie together, one row for each token that
//                 chose at least one expert here, with its experts beside it. The expert's rank
//                 weighs and adds what it has, and sends one row a token back.
//
// Live rows come first, by count; what lies behind is never read nor written. Rows are in the order
// of source rank, token, slot: the same in every run. Weights may be bf16 or f32, x any dtype.
//
// The descriptions live here and not in src/experts because a communicator may include core and
// numerics only, and no folder below the engine needs them but comm.
#pragma once

#include "core/status.h"
#include "core/view.h"

namespace lr::comm {

// A rank's own tokens.
struct Tokens {
    ConstView x;              // [n,D]
    ConstView ids;            // [n,K] i32, expert of the whole model; -1: none
    ConstView weights;        // [n,K]
    ConstView n_live;         // [1] i32
    std::int64_t experts = 0; // W*L, of the whole model
};

struct ExpertMajor {
    View rows;   // [L,R,D]
    View counts; // [L] i32
    View source; // [L,R,3] i32: source rank, token, slot
    View row_of; // [n,K] i32, of this rank's tokens: e % L * R + row on rank e / L; -1: none
};

struct RankMajor {
    View rows;    // [W,C,D]
    View counts;  // [W] i32
    View tokens;  // [W,C] i32: row of the source rank's batch
    View ids;     // [W,C,K] i32: expert of this rank, 0..L-1; -1: another rank's, or none
    View weights; // [W,C,K], those of Tokens
    View row_of;  // [n,W] i32, of this rank's tokens: row of its block on each rank; -1: none
};

// What the experts made of rank-major rows.
struct RankMajorResult {
    ConstView z;      // [rows,D] bf16 or f32, in any order
    ConstView row_of; // [W,C,K] i32: row of z of each live pair with an expert here
    View partial;     // [W,C,D] bf16 or f32: the local sums, written here; f32 rounds nothing
};

// The shape contracts: what Communicator::dispatch and combine check first. `ranks` is W.
Status check(const Tokens& tokens, const ExpertMajor& to, int ranks);
Status check(const Tokens& tokens, const RankMajor& to, int ranks);
// y [n,D] bf16 or f32.
Status check(const Tokens& tokens, const ExpertMajor& from, int ranks, ConstView z, ConstView y);
Status check(const Tokens& tokens, const RankMajor& from, int ranks, const RankMajorResult& result,
             ConstView y);

} // namespace lr::comm
