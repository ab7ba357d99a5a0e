// SPDX-License-Identifier: Apache-2.0
#include "core/thread_pool.h"
#include "cpu/quant/quant.h"
#include "cpu/rows.h"
#include "numerics/quantize.h"

#include <span>

namespace lr::cpu {
namespace {

void quantize_row(const ops::Fp8QuantArgs& args, std::int64_t i, std::span<const float> x) {
    const std::span<std::uint8_t> q(args.q.row_as<std::uint8_t>(i), x.size());
    if (args.scale.empty()) {
        numerics::quantize_fp8_with_scale(x, args.static_scale, q);
    } else if (args.group == 0) {
        *args.scale.row_as<float>(i) = numerics::quantize_fp8(x, q);
    } else {
        const auto groups = static_cast<std::size_t>(args.scale.shape[1]);
        numerics::quantize_fp8_groups(x, q, {args.scale.row_as<float>(i), groups});
    }
}

} // namespace

void fp8_quant(const ops::Fp8QuantArgs& args, ThreadPool& pool) {
    const std::int64_t k = args.x.shape[1];
    const std::int64_t live = live_rows(args.n_live, args.x.rows());
    pool.parallel_for(live, 4, [&](std::int64_t begin, std::int64_t end) {
        float* x = thread_scratch(0, k);
        for (std::int64_t i = begin; i < end; ++i) {
            load_floats(args.x, i, 0, k, x);
            quantize_row(args, i, {x, static_cast<std::size_t>(k)});
        }
    });
    zero_rows(args.q, live);
    if (!args.scale.empty())
        zero_rows(args.scale, live);
}

} // namespace lr::cpu
