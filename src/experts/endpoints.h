// SPDX-License-Identifier: Apache-2.0
//
// experts/endpoints.h: live rows have endpoints. The rows of expert e are [start[e], end[e]):
//
//   start[0] = 0,  start[e] = align_up(end[e-1], A),  end[e] = start[e] + count[e]
//
// An end includes the gaps that earlier experts left, but not the gap behind its own expert; an
// empty expert ends where it starts, on an aligned row. Capacity is an allocation, never a loop
// bound. Host tests and kernels share these functions.
//
// Letters: L local experts, K experts per token, A row alignment, R rows of capacity per expert,
// n tokens, P ranks.
#pragma once

#include "core/host_device.h"

#include <cstdint>

namespace lr::experts {

// Smallest multiple of `alignment` (>= 1) that is >= value (>= 0).
LR_HD constexpr std::int64_t align_up(std::int64_t value, std::int64_t alignment) {
    return (value + alignment - 1) / alignment * alignment;
}

// start[e] and end[e] from counts[L]; returns end[L-1] (0 for L == 0). start and end may not be
// counts.
LR_HD inline std::int32_t scan_endpoints(const std::int32_t* counts, std::int32_t local,
                                         std::int32_t alignment, std::int32_t* start,
                                         std::int32_t* end) {
    std::int32_t last = 0;
    for (std::int32_t e = 0; e < local; ++e) {
        start[e] = static_cast<std::int32_t>(align_up(last, alignment));
        last = start[e] + counts[e];
        end[e] = last;
    }
    return last;
}

// Rows that suffice for n tokens which each choose K distinct experts, L of them here, whatever
// they choose: no end, aligned up, exceeds it. It is reached by the worst routing.
//
// At most p = n*min(K, L) pairs are local. They touch at most m = min(L, p) experts, and each
// touched expert wastes at most A-1 rows; a sum of multiples of A is one, hence the division. No
// expert has more than n rows either. (In short min(n*K + L*(A-1), L*align_up(n, A)).)
LR_HD constexpr std::int64_t rows_capacity(std::int64_t n, std::int64_t per_token,
                                           std::int64_t local, std::int64_t alignment) {
    const std::int64_t pairs = n * (per_token < local ? per_token : local);
    const std::int64_t touched = local < pairs ? local : pairs;
    const std::int64_t packed = (pairs + touched * (alignment - 1)) / alignment * alignment;
    const std::int64_t separate = local * align_up(n, alignment);
    return packed < separate ? packed : separate;
}

// Rows of a compact copy of an expert-major [L, R, D] buffer whose tokens chose K experts each and
// number at most R: min(L*R, R*K).
LR_HD constexpr std::int64_t compact_rows(std::int64_t local, std::int64_t rows,
                                          std::int64_t per_token) {
    const std::int64_t slots = local * rows;
    const std::int64_t pairs = rows * per_token;
    return slots < pairs ? slots : pairs;
}

// Pairs that P source ranks with at most b live tokens each can send to one rank: P*b*K. b must
// bound every source rank, not this one alone.
LR_HD constexpr std::int64_t tight_rows(std::int64_t ranks, std::int64_t tokens_per_rank,
                                        std::int64_t per_token) {
    return ranks * tokens_per_rank * per_token;
}

} // namespace lr::experts
