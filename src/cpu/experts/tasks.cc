// SPDX-License-Identifier: Apache-2.0
#include "cpu/experts/tasks.h"

#include "cpu/rows.h"

#include <algorithm>

namespace lr::cpu {

void for_each_expert_panel(ConstView start, ConstView end, std::int64_t columns, std::int64_t width,
                           ThreadPool& pool, ExpertTask body) {
    const std::int64_t panels = (columns + width - 1) / width;
    pool.parallel_for(start.rows() * panels, 1, [&](std::int64_t begin, std::int64_t last) {
        for (std::int64_t task = begin; task < last; ++task) {
            const std::int64_t e = task / panels;
            const std::int64_t first = task % panels * width;
            const RowRun rows{int_at(start, e), int_at(end, e) - int_at(start, e)};
            if (rows.count > 0)
                body(e, rows, {first, std::min(width, columns - first)});
        }
    });
}

} // namespace lr::cpu
