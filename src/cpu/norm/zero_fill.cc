// SPDX-License-Identifier: Apache-2.0
#include "core/thread_pool.h"
#include "cpu/norm/norm.h"
#include "cpu/rows.h"

namespace lr::cpu {

void zero_fill(const ops::ZeroFillArgs& args, ThreadPool& pool) {
    pool.parallel_for(args.y.rows(), 64, [&](std::int64_t begin, std::int64_t end) {
        zero_rows(args.y.slice_rows(begin, end - begin), 0);
    });
}

} // namespace lr::cpu
