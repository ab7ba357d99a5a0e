// SPDX-License-Identifier: Apache-2.0
#include "core/thread_pool.h"
#include "cpu/gdn/conv.h"
#include "cpu/gdn/gdn.h"
#include "cpu/rows.h"

#include <algorithm>
#include <array>

namespace lr::cpu {
namespace {

// Rows [begin, end) of one sequence, one block of channels.
void convolve_sequence(const ops::CausalConvArgs& args, gdn::ConvBlock& block,
                       std::int64_t sequence, std::int64_t begin, std::int64_t end,
                       std::int64_t first, std::int64_t count) {
    std::array<float, gdn::kConvBlock> out{};
    const std::int64_t slot = int_at(args.slot, sequence);
    if (slot < 0) {
        for (std::int64_t row = begin; row < end; ++row)
            store_floats(args.y, row, first, count, out.data());
        return;
    }
    block.clear();
    if (int_at(args.mask, sequence) != 0)
        block.load_state(args.conv_state, slot);
    for (std::int64_t row = begin; row < end; ++row) {
        block.step(args.qkv, row, out.data());
        store_floats(args.y, row, first, count, out.data());
    }
    block.store_state(args.conv_state, slot);
}

} // namespace

void causal_conv(const ops::CausalConvArgs& args, ThreadPool& pool) {
    const std::int64_t live = live_rows(args.n_live, args.y.rows());
    const std::int64_t channels = args.y.shape[1];
    const std::int64_t sequences = args.slot.shape[0];
    zero_rows(args.y, live);
    pool.parallel_for(channels, gdn::kConvBlock, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t first = begin; first < end; first += gdn::kConvBlock) {
            const std::int64_t count = std::min(gdn::kConvBlock, end - first);
            gdn::ConvBlock block(args.conv, first, count);
            for (std::int64_t b = 0; b < sequences; ++b) {
                const std::int64_t row = int_at(args.cu_seqlens, b);
                const std::int64_t row_end =
                    std::min<std::int64_t>(live, int_at(args.cu_seqlens, b + 1));
                if (row < row_end)
                    convolve_sequence(args, block, b, row, row_end, first, count);
            }
        }
    });
}

} // namespace lr::cpu
