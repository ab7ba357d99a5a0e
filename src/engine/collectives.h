// SPDX-License-Identifier: Apache-2.0
//
// engine/collectives.h: the nodes of a step that speak to other ranks.
#pragma once

#include "comm/communicator.h"
#include "core/thread_pool.h"
#include "ops/any_op.h"

#include <memory>
#include <string_view>

namespace lr::engine {

// A rank's communicators, one for each RankGroup.
struct RankComms {
    std::unique_ptr<comm::Communicator> world, tensor;

    comm::Communicator& of(RankGroup group) const {
        return group == RankGroup::kWorld ? *world : *tensor;
    }
};

// Whether the op takes part in a collective of more than one rank.
bool is_collective(const ops::AnyArgs& args);

// Runs such an op on the CPU; every rank of its group runs it. `args` gets the peers' addresses.
Status run_collective(ops::AnyArgs& args, std::string_view at, const RankComms& comms,
                      ThreadPool& pool);

} // namespace lr::engine
