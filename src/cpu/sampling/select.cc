// SPDX-License-Identifier: Apache-2.0
#include "cpu/sampling/select.h"

#include "core/check.h"

#include <algorithm>
#include <array>
#include <bit>

namespace lr::cpu {
namespace {

// Keys are looked at from the top, so many bits at a time.
constexpr int kDigit = 11;
constexpr std::size_t kDigits = std::size_t{1} << kDigit;

// The key of the last candidate in rank before which less than `limit` (>= 1) has added up; all add
// up to `limit` at least. One digit after the other: the digit whose candidates carry the sum over
// the limit holds the key, and only they are looked at again.
template <typename Measure> std::uint64_t last_key(std::span<const Candidate> candidates,
                                                   std::uint64_t limit, Candidate* scratch,
                                                   const Measure& measure) {
    for (int shift = 64 - kDigit; candidates.size() > 1; shift = std::max(0, shift - kDigit)) {
        const auto digit = [&](const Candidate& c) { return (c.key >> shift) % kDigits; };
        std::array<std::uint64_t, kDigits> sums{};
        for (const Candidate& c : candidates)
            sums[digit(c)] += measure(c);
        std::size_t crossing = kDigits - 1;
        for (; sums[crossing] < limit; --crossing) {
            limit -= sums[crossing];
            LR_CHECK_GE(crossing, std::size_t{1});
        }
        std::size_t left = 0;
        for (const Candidate& c : candidates) // maybe within scratch: never ahead of the reading
            if (digit(c) == crossing)
                scratch[left++] = c;
        candidates = {scratch, left};
    }
    return candidates.front().key;
}

std::span<Candidate> keep_from(std::span<Candidate> candidates, std::uint64_t last) {
    const auto end = std::remove_if(candidates.begin(), candidates.end(),
                                    [&](const Candidate& c) { return c.key < last; });
    return {candidates.begin(), end};
}

} // namespace

Candidate make_candidate(float z, std::int64_t id, std::uint64_t weight) {
    constexpr std::uint32_t kSign = 0x8000'0000u;
    const auto bits = std::bit_cast<std::uint32_t>(z + 0.0f); // -0 becomes 0
    const std::uint32_t ordered = bits & kSign ? ~bits : bits | kSign;
    return {std::uint64_t{ordered} << 32 | static_cast<std::uint32_t>(~id), weight};
}

std::int64_t candidate_id(const Candidate& candidate) {
    return ~static_cast<std::uint32_t>(candidate.key);
}

std::span<Candidate> keep_top_k(std::span<Candidate> candidates, std::int64_t k,
                                Candidate* scratch) {
    if (k >= std::ssize(candidates))
        return candidates;
    return keep_from(candidates, last_key(candidates, static_cast<std::uint64_t>(k), scratch,
                                          [](const Candidate&) { return std::uint64_t{1}; }));
}

std::span<Candidate> keep_top_p(std::span<Candidate> candidates, std::uint64_t limit,
                                Candidate* scratch) {
    return keep_from(candidates, last_key(candidates, std::max(limit, std::uint64_t{1}), scratch,
                                          [](const Candidate& c) { return c.weight; }));
}

} // namespace lr::cpu
