// SPDX-License-Identifier: Apache-2.0
//
// 64 bits over a checkpoint's tensor names and bytes, as tools/goldens/weights.py digest() makes
// them.
#pragma once

#include "checkpoint/checkpoint.h"
#include "numerics/counter_rng.h"

#include <cstddef>
#include <cstdint>

namespace lr::checkpoint {

inline std::uint64_t hash_of(const std::byte* data, std::int64_t bytes) {
    return numerics::fnv1a64(
        {reinterpret_cast<const char*>(data), static_cast<std::size_t>(bytes)});
}

inline std::uint64_t digest(const Checkpoint& checkpoint) {
    std::uint64_t total = 0;
    for (const TensorInfo& tensor : checkpoint.tensors())
        total +=
            numerics::mix64(numerics::fnv1a64(tensor.name) ^ hash_of(tensor.data, tensor.bytes));
    return total;
}

} // namespace lr::checkpoint
