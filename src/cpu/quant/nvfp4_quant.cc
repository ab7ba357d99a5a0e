// SPDX-License-Identifier: Apache-2.0
#include "core/thread_pool.h"
#include "cpu/quant/quant.h"
#include "cpu/rows.h"
#include "numerics/quantize.h"

#include <span>

namespace lr::cpu {

void nvfp4_quant(const ops::Nvfp4QuantArgs& args, ThreadPool& pool) {
    const std::int64_t k = args.x.shape[1];
    const auto width = static_cast<std::size_t>(k);
    const std::int64_t live = live_rows(args.n_live, args.x.rows());
    const numerics::EncodeScale g(args.encode_scale);
    pool.parallel_for(live, 4, [&](std::int64_t begin, std::int64_t end) {
        float* x = thread_scratch(0, k);
        for (std::int64_t i = begin; i < end; ++i) {
            load_floats(args.x, i, 0, k, x);
            numerics::quantize_nvfp4_activation({x, width}, g,
                                                {args.q.row_as<std::uint8_t>(i), width / 2},
                                                {args.scale.row_as<std::uint8_t>(i), width / 16});
        }
    });
    zero_rows(args.q, live);
    zero_rows(args.scale, live);
}

} // namespace lr::cpu
