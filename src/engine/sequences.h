// SPDX-License-Identifier: Apache-2.0
//
// engine/sequences.h: the sequences of an engine and what they hold. Not thread safe: the engine's
// mutex guards it.
#pragma once

#include "engine/engine.h"
#include "engine/state.h"

namespace lr::engine {

struct Sequence {
    std::uint32_t generation = 0;
    bool open = false;
    bool fresh = true; // its slot has not been zeroed yet
    std::int32_t slot = -1;
    std::int64_t length = 0; // tokens submitted
    std::vector<std::int32_t> pages = {};
    bool failed = false;   // a step of it failed: its state is not what its length says
    bool has_last = false; // a token was (or is being) drawn from its last row
};

class SequenceTable {
  public:
    SequenceTable(StateStore& states, std::int64_t context) : states_(states), context_(context) {}

    Result<SequenceId> open();
    // One like it in everything but slot and pages, which it has as many of as its length needs.
    Result<SequenceId> fork(SequenceId id);
    Status close(SequenceId id);
    // The open sequence behind an id; nullptr when it has been closed meanwhile (its number may
    // belong to another by then).
    Sequence* find_open(SequenceId id);
    // The open sequence behind an id, or an error that says why there is none.
    Result<Sequence*> find(SequenceId id);
    // The same, and no step of it has failed.
    Result<Sequence*> find_usable(SequenceId id);
    // Makes room for `tokens` more; nothing changes on an error.
    Status reserve(Sequence& sequence, std::int64_t tokens);
    Sequence& at(std::int32_t index) { return sequences_[static_cast<std::size_t>(index)]; }

  private:
    StateStore& states_;
    std::int64_t context_;
    std::vector<Sequence> sequences_;
};

} // namespace lr::engine
