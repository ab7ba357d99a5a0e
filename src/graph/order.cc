// SPDX-License-Identifier: Apache-2.0
#include "graph/order.h"

#include "core/check.h"

#include <algorithm>

namespace lr::graph {

HappensBefore::HappensBefore(std::int32_t count, std::span<const Pair> order)
    : count_(count), words_((static_cast<std::size_t>(count) + 63) / 64),
      ancestors_(words_ * static_cast<std::size_t>(count), 0) {
    std::vector<Pair> pairs(order.begin(), order.end());
    std::sort(pairs.begin(), pairs.end(),
              [](const Pair& a, const Pair& b) { return a.second < b.second; });
    // Ascending targets: the ancestors of `first` are complete when `second` inherits them.
    for (const auto& [first, second] : pairs) {
        LR_CHECK_GE(first, 0);
        LR_CHECK_LT(first, second);
        LR_CHECK_LT(second, count);
        std::uint64_t* target = ancestors_.data() + static_cast<std::size_t>(second) * words_;
        const std::uint64_t* source = row(first);
        for (std::size_t word = 0; word < words_; ++word)
            target[word] |= source[word];
        target[static_cast<std::size_t>(first) / 64] |= std::uint64_t{1}
                                                        << (static_cast<std::size_t>(first) % 64);
    }
}

} // namespace lr::graph
