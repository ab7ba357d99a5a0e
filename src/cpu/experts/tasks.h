// SPDX-License-Identifier: Apache-2.0
//
// cpu/experts/tasks.h: how the expert products are shared out: one task is a panel of output
// columns of one expert that has rows.
#pragma once

#include "core/function_ref.h"
#include "core/thread_pool.h"
#include "core/view.h"
#include "cpu/gemm/panel.h"

#include <cstdint>

namespace lr::cpu {

// Calls body(expert, rows [start[e], end[e]), columns) for every panel of at most `width` of
// `columns` columns of every expert with rows.
using ExpertTask = FunctionRef<void(std::int64_t expert, RowRun rows, RowRun columns)>;
void for_each_expert_panel(ConstView start, ConstView end, std::int64_t columns, std::int64_t width,
                           ThreadPool& pool, ExpertTask body);

} // namespace lr::cpu
