// SPDX-License-Identifier: Apache-2.0
#include "engine/sequences.h"

namespace lr::engine {

Result<SequenceId> SequenceTable::open() {
    LR_TRY_ASSIGN(const std::int32_t slot, states_.take_slot());
    std::size_t index = 0;
    while (index < sequences_.size() && sequences_[index].open)
        ++index;
    if (index == sequences_.size())
        sequences_.emplace_back();
    Sequence& sequence = sequences_[index];
    const std::uint32_t generation = sequence.generation + 1;
    sequence = {.generation = generation, .open = true, .slot = slot};
    return SequenceId{static_cast<std::int32_t>(index), generation};
}

Result<SequenceId> SequenceTable::fork(SequenceId id) {
    LR_TRY_ASSIGN(const Sequence* found, find_usable(id));
    const Sequence parent = *found; // open() may move the table
    LR_TRY_ASSIGN(const SequenceId child, open());
    Sequence& sequence = at(child.index);
    if (Status status = states_.grow_pages(sequence.pages, parent.length); !status.ok()) {
        LR_TRY(close(child));
        return fail(std::move(status));
    }
    sequence.fresh = parent.fresh;
    sequence.length = parent.length;
    sequence.has_last = parent.has_last;
    return child;
}

Sequence* SequenceTable::find_open(SequenceId id) {
    Sequence& sequence = at(id.index);
    return sequence.open && sequence.generation == id.generation ? &sequence : nullptr;
}

Result<Sequence*> SequenceTable::find(SequenceId id) {
    if (id.index < 0 || id.index >= std::ssize(sequences_))
        return fail(Code::kNotFound, "sequence {}: no such sequence", id.index);
    Sequence& sequence = at(id.index);
    if (!sequence.open || sequence.generation != id.generation)
        return fail(Code::kNotFound, "sequence {}: it has been closed", id.index);
    return &sequence;
}

Result<Sequence*> SequenceTable::find_usable(SequenceId id) {
    LR_TRY_ASSIGN(Sequence * sequence, find(id));
    if (sequence->failed)
        return fail(Code::kInvalidArgument,
                    "sequence {}: an earlier step of it failed; close it and start anew", id.index);
    return sequence;
}

Status SequenceTable::close(SequenceId id) {
    LR_TRY_ASSIGN(Sequence * sequence, find(id));
    states_.give_slot(sequence->slot);
    states_.give_pages(sequence->pages);
    sequence->open = false;
    return {};
}

Status SequenceTable::reserve(Sequence& sequence, std::int64_t tokens) {
    const std::int64_t length = sequence.length + tokens;
    if (length > context_)
        return fail(Code::kInvalidArgument,
                    "sequence: {} tokens are more than its context of {}; load with a larger one",
                    length, context_);
    return states_.grow_pages(sequence.pages, length);
}

} // namespace lr::engine
