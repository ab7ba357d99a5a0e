// SPDX-License-Identifier: Apache-2.0
//
// comm/communicator.h: how one rank speaks to the others of its group.
//
// Every rank of a group makes the same calls in the same order; each returns once this rank's part
// is done. `at` says where the caller stands ("L3.11"): all ranks say the same, and it is what
// error messages name.
//
// Numbers: sums run in rank order in f32 and are rounded once, when stored. A result has the same
// bits on every rank and in every run.
//
// Errors. The first failure anywhere ends the world: every rank's call in progress and every later
// one returns that one Status, whose message names the rank or ranks at fault. Failures are: a rank
// that abandons the work or whose communicator is destroyed, ranks that make different calls
// (operation, dtype, shape, place), a rank that does not arrive within the time limit. Nothing
// waits longer than that. After an error, memory given to a call must stay valid until every rank
// has returned.
#pragma once

#include "comm/expert_layout.h"
#include "core/ranks.h"
#include "core/status.h"
#include "core/view.h"

#include <memory>
#include <string>
#include <string_view>

namespace lr::comm {

class Communicator {
  public:
    virtual ~Communicator() = default;

    virtual int rank() const = 0; // in this group
    virtual int size() const = 0;

    // Ranks of the same colour form a group, in the order of their ranks here; `name` is what
    // messages call it. A call that all ranks of this group make.
    virtual Result<std::unique_ptr<Communicator>> split(int colour, std::string name) = 0;

    virtual Status barrier(std::string_view at) = 0;

    // Row 0 of every rank's `mine`, readable until this rank calls release(); nobody may write to
    // his own until release() has returned, when all have read. dtype, shape and stride agree.
    virtual Result<PeerRows> exchange(std::string_view at, ConstView mine) = 0;
    virtual Status release(std::string_view at) = 0;

    // y = sum of all ranks' x. Both [n,D], bf16 or f32, equal dtypes; y may be x.
    virtual Status all_reduce(std::string_view at, ConstView x, View y) = 0;
    // y [n,W*N] = the ranks' x [n,N], side by side; equal dtypes; y overlaps x nowhere.
    virtual Status all_gather(std::string_view at, ConstView x, View y) = 0;

    // Sends each live token to the ranks of its experts. An expert (or a source rank's block) that
    // gets more rows than it has room for is an error that names it, before any row is written;
    // so is an id outside -1..W*L-1.
    virtual Status dispatch(std::string_view at, const Tokens& tokens, const ExpertMajor& to) = 0;
    virtual Status dispatch(std::string_view at, const Tokens& tokens, const RankMajor& to) = 0;

    // Brings the experts' rows back. `from` is what dispatch wrote for `tokens`.
    //   y[t] = sum over slots k = 0..K-1 with an expert of weights[t,k] * z[its row]
    // z [L,R,D]; products and sums f32, one rounding. Rows of y beyond n_live are zero.
    virtual Status combine(std::string_view at, const Tokens& tokens, const ExpertMajor& from,
                           ConstView z, View y) = 0;
    // The same sum, first over the slots of each rank (rounded where `partial` is bf16), then over
    // ranks 0..W-1.
    virtual Status combine(std::string_view at, const Tokens& tokens, const RankMajor& from,
                           const RankMajorResult& result, View y) = 0;

    // This rank cannot go on; the others end with "rank N: " and this message.
    virtual void abandon(const Status& why) = 0;
};

} // namespace lr::comm
