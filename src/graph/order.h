// SPDX-License-Identifier: Apache-2.0
//
// graph/order.h: what surely happens before what.
//
// A directed acyclic graph over positions 0..count-1 of a list, closed under transitivity. List
// order by itself is no order at all.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace lr::graph {

class HappensBefore {
  public:
    using Pair = std::pair<std::int32_t, std::int32_t>; // first before second; first < second

    HappensBefore(std::int32_t count, std::span<const Pair> order);

    std::int32_t count() const { return count_; }
    // True when `a` has surely ended before `b` begins.
    bool before(std::int32_t a, std::int32_t b) const {
        return (row(b)[static_cast<std::size_t>(a) / 64] >> (static_cast<std::size_t>(a) % 64)) & 1;
    }

  private:
    const std::uint64_t* row(std::int32_t b) const {
        return ancestors_.data() + static_cast<std::size_t>(b) * words_;
    }

    std::int32_t count_;
    std::size_t words_;
    std::vector<std::uint64_t> ancestors_; // bit a of row b: a before b
};

} // namespace lr::graph
