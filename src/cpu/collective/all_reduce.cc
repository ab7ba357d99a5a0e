// SPDX-License-Identifier: Apache-2.0
#include "core/thread_pool.h"
#include "cpu/collective/collective.h"
#include "cpu/rows.h"

#include <cstring>

namespace lr::cpu {

void all_reduce(const ops::AllReduceArgs& args, ThreadPool& pool) {
    LR_CHECK_EQ(args.ranks, 1);
    const std::int64_t live = live_rows(args.n_live, args.x.rows());
    const auto row_bytes =
        static_cast<std::size_t>(dtype_bytes(args.x.dtype, args.x.shape.row_count()));
    if (args.y.data != args.x.data || args.y.row_stride != args.x.row_stride)
        pool.parallel_for(live, 64, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; ++i)
                std::memcpy(args.y.row(i), args.x.row(i), row_bytes);
        });
    zero_rows(args.y, live);
}

} // namespace lr::cpu
