// SPDX-License-Identifier: Apache-2.0
#include "core/thread_pool.h"
#include "cpu/gdn/conv.h"
#include "cpu/gdn/gdn.h"
#include "cpu/rows.h"

#include <algorithm>
#include <array>

namespace lr::cpu {
namespace {

bool live_row(const ops::UnpackConvArgs& args, std::int64_t row, std::int64_t live) {
    return row < live && int_at(args.slot, row) >= 0;
}

// Stores columns [first, first + count) of q | k | v.
void store_qkv(const ops::UnpackConvArgs& args, std::int64_t row, std::int64_t first,
               std::int64_t count, const float* values) {
    std::int64_t part_first = 0;
    for (const View& part : {args.q, args.k, args.v}) {
        const std::int64_t width = part.shape.row_count();
        const std::int64_t begin = std::max(first, part_first);
        const std::int64_t end = std::min(first + count, part_first + width);
        if (begin < end)
            store_floats(part, row, begin - part_first, end - begin, values + (begin - first));
        part_first += width;
    }
}

void convolve_block(const ops::UnpackConvArgs& args, std::int64_t first, std::int64_t count,
                    std::int64_t live) {
    gdn::ConvBlock block(args.conv, first, count);
    std::array<float, gdn::kConvBlock> out;
    for (std::int64_t row = 0; row < live; ++row) {
        if (!live_row(args, row, live))
            continue;
        const std::int64_t slot = int_at(args.slot, row);
        block.load_state(args.conv_state, slot);
        block.step(args.qkvz, row, out.data());
        block.store_state(args.conv_state, slot);
        store_qkv(args, row, first, count, out.data());
    }
}

void copy_columns(ConstView from, std::int64_t row, std::int64_t first, View to) {
    const std::int64_t count = to.shape.row_count();
    float* values = thread_scratch(0, count);
    load_floats(from, row, first, count, values);
    store_floats(to, row, 0, count, values);
}

} // namespace

void unpack_conv(const ops::UnpackConvArgs& args, ThreadPool& pool) {
    const std::int64_t n = args.q.rows();
    const std::int64_t live = live_rows(args.n_live, n);
    const std::int64_t channels = args.conv_state.shape[1];

    pool.parallel_for(channels, gdn::kConvBlock, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t first = begin; first < end; first += gdn::kConvBlock)
            convolve_block(args, first, std::min(gdn::kConvBlock, end - first), live);
    });
    pool.parallel_for(n, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
            if (live_row(args, row, live)) {
                copy_columns(args.qkvz, row, channels, args.z);
                copy_columns(args.ba, row, 0, args.b);
                copy_columns(args.ba, row, args.b.shape[1], args.a);
            } else {
                for (const View& out : {args.q, args.k, args.v, args.z, args.b, args.a})
                    zero_rows(out.slice_rows(row, 1), 0);
            }
        }
    });
}

} // namespace lr::cpu
