// SPDX-License-Identifier: Apache-2.0
#include "cpu/gdn/gdn.h"

namespace lr::cpu {

void initial_state_mask(const ops::InitialStateMaskArgs& args, ThreadPool&) {
    const auto* prefix_len = args.prefix_len.as<std::int32_t>();
    auto* mask = args.mask.as<std::int32_t>();
    for (std::int64_t b = 0; b < args.mask.rows(); ++b)
        mask[b] = prefix_len[b] > 0 ? 1 : 0;
}

} // namespace lr::cpu
