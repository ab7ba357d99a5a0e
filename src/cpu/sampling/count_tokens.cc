// SPDX-License-Identifier: Apache-2.0
#include "cpu/rows.h"
#include "cpu/sampling/sampling.h"

namespace lr::cpu {

// On one thread: rows of one sequence may hold the same token, and a step has few of them.
void count_tokens(const ops::CountTokensArgs& args, ThreadPool&) {
    const std::int64_t live = live_rows(args.n_live, args.ids.rows());
    for (std::int64_t r = 0; r < live; ++r) {
        const std::int32_t sequence = int_at(args.sequence, r);
        const std::int32_t slot = sequence < 0 ? -1 : int_at(args.slot, sequence);
        if (slot < 0)
            continue;
        std::uint16_t& entry = args.counts.row_as<std::uint16_t>(slot)[int_at(args.ids, r)];
        if (int_at(args.generated, r) == 0)
            entry |= ops::kPromptToken;
        else if ((entry & ops::kMaxTokenCount) < ops::kMaxTokenCount)
            ++entry;
    }
}

} // namespace lr::cpu
