// SPDX-License-Identifier: Apache-2.0
#include "engine/collectives.h"

#include "core/check.h"
#include "cpu/norm/norm.h"
#include "cpu/rows.h"

namespace lr::engine {
namespace {

struct Collective {
    std::string_view at;
    const RankComms& comms;
    ThreadPool& pool;

    Status operator()(ops::AllReduceArgs& args) const {
        const std::int64_t live = cpu::live_rows(args.n_live, args.x.rows());
        LR_TRY(comms.of(args.group)
                   .all_reduce(at, args.x.slice_rows(0, live), args.y.slice_rows(0, live)));
        cpu::zero_rows(args.y, live);
        return {};
    }

    Status operator()(ops::AllGatherArgs& args) const {
        return comms.of(args.group).all_gather(at, args.x, args.y);
    }

    // The sum over ranks is part of the op, which reads the others' rows where they lie.
    Status operator()(ops::AddRmsnormArgs& args) const {
        comm::Communicator& group = comms.of(args.group);
        LR_TRY_ASSIGN(args.peers, group.exchange(at, args.x));
        cpu::add_rmsnorm(args, pool);
        return group.release(at);
    }

    template <typename Other> Status operator()(Other&) const {
        LR_CHECK(false);
        return {};
    }
};

template <typename Args> bool several(const ops::AnyArgs& args) {
    const auto* typed = std::get_if<Args>(&args);
    return typed && typed->ranks > 1;
}

} // namespace

bool is_collective(const ops::AnyArgs& args) {
    return several<ops::AllReduceArgs>(args) || several<ops::AllGatherArgs>(args) ||
           several<ops::AddRmsnormArgs>(args);
}

Status run_collective(ops::AnyArgs& args, std::string_view at, const RankComms& comms,
                      ThreadPool& pool) {
    return std::visit(Collective{at, comms, pool}, args);
}

} // namespace lr::engine
