// SPDX-License-Identifier: Apache-2.0
#include "experts/load.h"

#include "core/check.h"
#include "numerics/counter_rng.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

namespace lr::experts {
namespace {

// weight * c, capped at 1, with the c that makes the sum K. Capping one may push another over.
Load capped(std::vector<double> weight, std::int64_t per_token) {
    Load load(weight.size(), 0);
    for (bool again = true; again;) {
        again = false;
        const double full = static_cast<double>(std::count(load.begin(), load.end(), 1.0));
        const double open = std::accumulate(weight.begin(), weight.end(), 0.0);
        const double scale = open > 0 ? (static_cast<double>(per_token) - full) / open : 0;
        for (std::size_t e = 0; e < weight.size(); ++e) {
            if (weight[e] == 0)
                continue;
            load[e] = weight[e] * scale;
            if (load[e] >= 1) {
                load[e] = 1;
                weight[e] = 0;
                again = true;
            }
        }
    }
    return load;
}

} // namespace

Load uniform_load(std::int64_t experts, std::int64_t per_token) {
    return zipf_load(experts, per_token, 0);
}

Load zipf_load(std::int64_t experts, std::int64_t per_token, double exponent) {
    LR_CHECK(exponent >= 0 && per_token >= 1 && per_token <= experts);
    std::vector<double> weight;
    for (std::int64_t e = 0; e < experts; ++e)
        weight.push_back(std::pow(static_cast<double>(e + 1), -exponent));
    return capped(std::move(weight), per_token);
}

Load skewed_load(std::int64_t experts, std::int64_t per_token, double skew) {
    const double mean = static_cast<double>(per_token) / static_cast<double>(experts);
    LR_CHECK(skew >= 1 && skew * mean <= 1 + 1e-12);
    double low = 0, high = 64; // by halves: the busiest expert's load grows with the exponent
    for (int step = 0; step < 64; ++step) {
        const double middle = (low + high) / 2;
        (zipf_load(experts, per_token, middle).front() < skew * mean ? low : high) = middle;
    }
    return zipf_load(experts, per_token, high);
}

Load measured_load(std::span<const std::int32_t> counts, std::int64_t per_token) {
    const auto used = std::count_if(counts.begin(), counts.end(), [](auto c) { return c > 0; });
    LR_CHECK(per_token >= 1 && used >= per_token);
    return capped({counts.begin(), counts.end()}, per_token);
}

double measured_skew(std::span<const std::int32_t> counts) {
    double sum = 0, most = 0;
    for (std::int32_t count : counts) {
        sum += count;
        most = std::max<double>(most, count);
    }
    return sum > 0 ? most * static_cast<double>(counts.size()) / sum : 0;
}

Routing draw_routing(const Load& load, std::int64_t tokens, std::int64_t per_token,
                     std::uint64_t seed) {
    const numerics::CounterRng random("experts.draw_routing", seed);
    Routing routing{.local = std::ssize(load), .per_token = per_token, .ids = {}};
    std::vector<double> reach; // of the loads laid end to end
    std::partial_sum(load.begin(), load.end(), std::back_inserter(reach));
    for (std::int64_t token = 0; token < tokens; ++token) {
        // Points u, u + 1, ..., u + K - 1 on that line: no load is longer than 1, so none holds
        // two.
        const double u = numerics::unit_from_bits(random.bits(static_cast<std::uint64_t>(token)));
        auto next = reach.begin();
        std::int64_t slot = 0;
        for (; slot < per_token; ++slot, ++next) {
            next = std::upper_bound(next, reach.end(), u + static_cast<double>(slot));
            if (next == reach.end())
                break;
            routing.ids.push_back(static_cast<std::int32_t>(next - reach.begin()));
        }
        // The sum of loads may fall short of K by rounding: the last point then finds the last
        // expert that has a load and is not taken.
        for (std::int32_t e = static_cast<std::int32_t>(routing.local) - 1; slot < per_token; --e)
            if (load[static_cast<std::size_t>(e)] > 0 &&
                std::find(routing.ids.end() - slot, routing.ids.end(), e) == routing.ids.end()) {
                routing.ids.push_back(e);
                ++slot;
            }
    }
    return routing;
}

double expected_distinct(const Load& load, std::int64_t tokens) {
    double sum = 0;
    for (double p : load)
        sum += 1 - std::pow(1 - p, static_cast<double>(tokens));
    return sum;
}

} // namespace lr::experts
