// SPDX-License-Identifier: Apache-2.0
//
// experts/load.h: how tokens spread over experts. A load is the probability of each expert to be
// among the K that a token chooses, so it adds up to K and no entry exceeds 1; tokens choose
// independently of one another.
#pragma once

#include "experts/layout.h"

namespace lr::experts {

using Load = std::vector<double>; // [E]

// Every expert alike: K / E.
Load uniform_load(std::int64_t experts, std::int64_t per_token);

// In proportion to (e + 1)^-exponent, capped at 1 (what is cut off goes to the others in the same
// proportion). Exponent >= 0; 0 is uniform. Requires 1 <= K <= E.
Load zipf_load(std::int64_t experts, std::int64_t per_token, double exponent);

// The Zipf load whose busiest expert has `skew` times the mean K / E. Requires 1 <= skew and
// skew * K <= E.
Load skewed_load(std::int64_t experts, std::int64_t per_token, double skew);

// Of counts that were measured: count[e] * K / sum, capped as above. Requires a sum > 0 and at
// least K experts with rows.
Load measured_load(std::span<const std::int32_t> counts, std::int64_t per_token);

// The busiest expert's rows over the mean; 0 where there are no rows.
double measured_skew(std::span<const std::int32_t> counts);

// Each token's K distinct experts, drawn with exactly these probabilities (systematic sampling: one
// uniform number a token; numerics/counter_rng.h).
Routing draw_routing(const Load& load, std::int64_t tokens, std::int64_t per_token,
                     std::uint64_t seed);

// Experts that n tokens are expected to touch: sum over e of 1 - (1 - load[e])^n.
double expected_distinct(const Load& load, std::int64_t tokens);

} // namespace lr::experts
