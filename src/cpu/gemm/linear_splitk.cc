// SPDX-License-Identifier: Apache-2.0
#include "cpu/gemm/gemm.h"
#include "cpu/gemm/panel.h"
#include "cpu/rows.h"

#include <algorithm>

namespace lr::cpu {

namespace {

// out[i, j] = dot of columns [first, first + count) of row i of x and row j of a panel of w.
void multiply_columns(ConstView x, std::int64_t rows, const WeightRows& w, RowRun panel,
                      std::int64_t first, std::int64_t count, float* out, std::int64_t out_stride) {
    float* values = thread_scratch(0, rows * count);
    for (std::int64_t i = 0; i < rows; ++i)
        load_floats(x, i, first, count, values + i * count);
    for (std::int64_t done = 0; done < panel.count;) {
        const WeightRun run = w.run(panel.first + done, panel.count - done);
        DotArgs args;
        args.x = values;
        args.x_stride = count;
        args.rows = rows;
        args.w = run.data + code_bytes(run.codes, first);
        args.w_stride = run.stride;
        args.columns = run.rows;
        args.count = count;
        args.out = out + done;
        args.out_stride = out_stride;
        kernels().dot(run.codes, args);
        done += run.rows;
    }
}

} // namespace

void linear_splitk(const ops::LinearSplitkArgs& args, ThreadPool& pool) {
    constexpr std::int64_t kPanel = 16;
    const WeightRows w(args.w);
    const std::int64_t k = w.columns();
    const std::int64_t live = live_rows(args.n_live, args.x.rows());
    const std::int64_t splits = args.partial.shape[0];
    const std::int64_t length = ops::splitk_run(k, splits);
    const std::int64_t panels = (w.rows() + kPanel - 1) / kPanel;
    pool.parallel_for(splits * panels, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t task = begin; task < end; ++task) {
            const std::int64_t split = task / panels;
            const RowRun panel{task % panels * kPanel,
                               std::min(kPanel, w.rows() - task % panels * kPanel)};
            const std::int64_t first = std::min(split * length, k);
            float* out = args.partial.row_as<float>(split) + panel.first;
            multiply_columns(args.x, live, w, panel, first, std::min(length, k - first), out,
                             w.rows());
            for (std::int64_t i = live; i < args.x.rows(); ++i)
                std::fill_n(out + i * w.rows(), panel.count, 0.0f);
        }
    });
}

} // namespace lr::cpu
