// SPDX-License-Identifier: Apache-2.0
#include "cpu/experts/experts.h"
#include "cpu/experts/tasks.h"
#include "cpu/rows.h"

namespace lr::cpu {

void experts_down(const ops::ExpertsDownArgs& args, ThreadPool& pool) {
    const ActivationRows f(args.f, args.f_scale, args.f_global);
    const std::int64_t d = args.z.shape[1];
    for_each_expert_panel(args.start, args.end, d, panel_width(args.w.columns()), pool,
                          [&](std::int64_t e, RowRun rows, RowRun columns) {
                              multiply_panel(
                                  f, rows, WeightRows(args.w, e), columns, {},
                                  [&](std::int64_t first, std::int64_t count, const float* values) {
                                      for (std::int64_t i = 0; i < count; ++i)
                                          store_floats(args.z, first + i, columns.first,
                                                       columns.count, values + i * columns.count);
                                  });
                          });
}

} // namespace lr::cpu
