// SPDX-License-Identifier: Apache-2.0
//
// core/ranks.h: what ops, the graph and the communicator call the ranks that share a model.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace lr {

inline constexpr std::int32_t kMaxRanks = 16;

// The ranks that a collective runs over. kTensor: those with the same experts, which divide heads
// and widths among them. kWorld: all.
enum class RankGroup : std::uint8_t { kTensor, kWorld };

// Row 0 of one tensor on each rank of a group, in rank order; dtype, shape and stride are those of
// the reader's own.
using PeerRows = std::array<const std::byte*, kMaxRanks>;

} // namespace lr
