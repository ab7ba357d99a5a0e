// SPDX-License-Identifier: Apache-2.0
#include "cpu/gemm/gemm.h"
#include "cpu/rows.h"

#include <cstring>

namespace lr::cpu {

void gather_rows(const ops::GatherRowsArgs& args, ThreadPool& pool) {
    const auto row_bytes =
        static_cast<std::size_t>(dtype_bytes(args.y.dtype, args.y.shape.row_count()));
    pool.parallel_for(args.y.rows(), 16, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
            const std::int32_t row = int_at(args.rows, i);
            LR_CHECK(row >= -1 && row < args.x.rows());
            if (row < 0)
                std::memset(args.y.row(i), 0, row_bytes);
            else
                std::memcpy(args.y.row(i), args.x.row(row), row_bytes);
        }
    });
}

} // namespace lr::cpu
