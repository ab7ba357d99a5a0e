// SPDX-License-Identifier: Apache-2.0
#include "cpu/gemm/gemm.h"
#include "cpu/gemm/panel.h"
#include "cpu/rows.h"

namespace lr::cpu {

void linear(const ops::LinearArgs& args, ThreadPool& pool) {
    const WeightRows w(args.w);
    ActivationRows x(args.x, args.x_scale, args.x_global);
    const RowRun live{0, live_rows(args.n_live, args.x.rows())};
    zero_rows(args.y, live.count);
    if (live.count == 0)
        return;
    share_packed_rows(x, live.count, w, pool);
    pool.parallel_for(w.rows(), panel_width(w.columns(), live.count, w.rows(), pool.size()),
                      [&](std::int64_t begin, std::int64_t end) {
                          const std::int64_t width = end - begin;
                          multiply_panel(
                              x, live, w, {begin, width}, {},
                              [&](std::int64_t first, std::int64_t count, const float* values) {
                                  for (std::int64_t i = 0; i < count; ++i)
                                      store_floats(args.y, first + i, begin, width,
                                                   values + i * width);
                              });
                      });
}

} // namespace lr::cpu
