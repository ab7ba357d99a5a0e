// SPDX-License-Identifier: Apache-2.0
#include "core/thread_pool.h"
#include "cpu/gdn/gdn.h"
#include "cpu/rows.h"

#include <cstring>

namespace lr::cpu {

void qkv_split(const ops::QkvSplitArgs& args, ThreadPool& pool) {
    const std::int64_t live = live_rows(args.n_live, args.x.rows());
    pool.parallel_for(live, 16, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
            const std::byte* from = args.x.row(row);
            for (const View& part : {args.q, args.k, args.v}) {
                const std::int64_t bytes = dtype_bytes(part.dtype, part.shape.row_count());
                std::memcpy(part.row(row), from, static_cast<std::size_t>(bytes));
                from += bytes;
            }
        }
    });
    for (const View& part : {args.q, args.k, args.v})
        zero_rows(part, live);
}

} // namespace lr::cpu
