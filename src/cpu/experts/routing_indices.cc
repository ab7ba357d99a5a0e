// SPDX-License-Identifier: Apache-2.0
#include "cpu/experts/experts.h"
#include "cpu/rows.h"
#include "experts/endpoints.h"

#include <algorithm>
#include <cstring>

namespace lr::cpu {
namespace {

void hand_weights_on(const ops::RoutingIndicesArgs& args, std::int64_t live) {
    if (args.weights_out.empty())
        return;
    const auto row_bytes =
        static_cast<std::size_t>(dtype_bytes(args.weights.dtype, args.weights.shape.row_count()));
    for (std::int64_t i = 0; i < live; ++i)
        std::memcpy(args.weights_out.row(i), args.weights.row(i), row_bytes);
    zero_rows(args.weights_out, live);
}

} // namespace

// One pass on one thread: a few thousand integers at most, and the order is the contract.
void routing_indices(const ops::RoutingIndicesArgs& args, ThreadPool&) {
    const std::int64_t k = args.ids.shape[1];
    const std::int64_t live_pairs = live_rows(args.n_live, args.ids.rows()) * k;
    const auto local = static_cast<std::int32_t>(args.counts.shape[0]);
    const std::int64_t rows = args.row_map.rows();
    auto* counts = args.counts.as<std::int32_t>();
    auto* start = args.start.as<std::int32_t>();
    auto* end = args.end.as<std::int32_t>();
    auto* row_map = args.row_map.as<std::int32_t>();
    auto* row_of = args.row_of.as<std::int32_t>();
    const auto expert_of = [&](std::int64_t flat) {
        const std::int32_t id = args.ids.row_as<std::int32_t>(flat / k)[flat % k];
        const std::int32_t e = id < 0 ? -1 : id - args.first_expert;
        return e >= 0 && e < local ? e : -1;
    };

    hand_weights_on(args, live_pairs / k);
    std::fill_n(counts, local, 0);
    for (std::int64_t flat = 0; flat < live_pairs; ++flat)
        if (const std::int32_t e = expert_of(flat); e >= 0)
            ++counts[e];
    const std::int32_t last = experts::scan_endpoints(counts, local, args.align, start, end);
    LR_CHECK_LE(last, rows);

    std::fill_n(row_map, rows, -1);
    std::fill_n(row_of, args.row_of.rows(), -1);
    std::copy_n(start, local, end); // end is the next free row until all are placed
    for (std::int64_t flat = 0; flat < live_pairs; ++flat)
        if (const std::int32_t e = expert_of(flat); e >= 0) {
            const std::int32_t row = end[e]++;
            row_map[row] = static_cast<std::int32_t>(flat);
            row_of[flat] = row;
        }
}

} // namespace lr::cpu
