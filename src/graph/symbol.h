// SPDX-License-Identifier: Apache-2.0
//
// graph/symbol.h: addresses that are not pointers yet.
//
// While a step is built, a tensor has a number and no memory. Its views carry, in the data pointer,
// "tensor 7, byte 512": 24 bits of tensor, 40 bits of byte offset. Slicing a view moves the offset,
// so op arguments are built once, with their real types and strides, and bound later by replacing
// each symbol with base(tensor) + offset. A symbol is never dereferenced; op checks and costs read
// shapes only.
#pragma once

#include "core/view.h"

#include <cstdint>

namespace lr::graph {

using TensorId = std::int32_t;

inline constexpr int kOffsetBits = 40;
inline constexpr std::int32_t kMaxTensors = (1 << 23) - 2;

struct Symbol {
    TensorId tensor = -1;
    std::int64_t offset = 0; // bytes
};

// The address that stands for the start of a tensor.
inline std::byte* symbol_address(TensorId tensor) {
    return reinterpret_cast<std::byte*>((static_cast<std::uint64_t>(tensor) + 1) << kOffsetBits);
}

// tensor -1 for a null address.
inline Symbol to_symbol(const std::byte* address) {
    const auto bits = reinterpret_cast<std::uint64_t>(address);
    return {static_cast<TensorId>(bits >> kOffsetBits) - 1,
            static_cast<std::int64_t>(bits & ((std::uint64_t{1} << kOffsetBits) - 1))};
}

} // namespace lr::graph
