// SPDX-License-Identifier: Apache-2.0
#include "cpu/reference/reference.h"

#include "cpu/reference/ops.h"

#include <algorithm>

namespace lr::cpu::reference {
namespace {

struct Launcher {
    Errors& errors;
    ThreadPool& pool;

#define LR_REFERENCE_OP(Args, function)                                                            \
    void operator()(const ops::Args& args) const {                                                 \
        reference::function(args, errors, pool);                                                   \
    }
#include "cpu/reference/op_list.inc"
#undef LR_REFERENCE_OP
};

int ranks_of(const ops::AnyArgs& args) {
    if (const auto* norm = std::get_if<ops::AddRmsnormArgs>(&args))
        return norm->ranks;
    if (const auto* sum = std::get_if<ops::AllReduceArgs>(&args))
        return sum->ranks;
    if (const auto* gather = std::get_if<ops::AllGatherArgs>(&args))
        return gather->ranks;
    return 1;
}

} // namespace

std::int64_t live_rows(ConstView n_live, std::int64_t n) {
    return n_live.empty() ? n : std::clamp<std::int64_t>(int_at(n_live, 0), 0, n);
}

Status run(const ops::AnyArgs& args, Errors& errors, ThreadPool& pool) {
    if (ranks_of(args) > 1)
        return fail(Code::kUnsupported, "reference: {}: expected one rank, got {}",
                    ops::op_stem(args), ranks_of(args));
    std::visit(Launcher{errors, pool}, args);
    return {};
}

} // namespace lr::cpu::reference
