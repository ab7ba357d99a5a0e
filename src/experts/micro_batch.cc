// SPDX-License-Identifier: Apache-2.0
#include "experts/micro_batch.h"

namespace lr::experts {

double BatchCost::fill() const {
    return BlockFill{live_rows, blocks, covered_rows}.fill();
}

BatchCost& BatchCost::operator+=(const BatchCost& other) {
    tokens += other.tokens;
    live_rows += other.live_rows;
    allocated_rows += other.allocated_rows;
    blocks += other.blocks;
    covered_rows += other.covered_rows;
    tiles += other.tiles;
    rounds += other.rounds;
    launches += other.launches;
    experts += other.experts;
    expected_experts += other.expected_experts;
    weight_bytes += other.weight_bytes;
    expected_weight_bytes += other.expected_weight_bytes;
    activation_bytes += other.activation_bytes;
    floor_seconds += other.floor_seconds;
    return *this;
}

BatchCost batch_cost(const Problem& problem, const Load& load, const Machine& machine) {
    const Launch launch = plan_launch(problem, gemms(problem)[0].columns);
    const BlockFill fill = row_fill(launch);
    const Work work = measure(problem);
    BatchCost cost{.tokens = problem.routing.tokens(),
                   .live_rows = fill.live_rows,
                   .allocated_rows = allocated_rows(problem),
                   .blocks = fill.blocks,
                   .covered_rows = fill.covered_rows,
                   .tiles = count_programs(launch).computing,
                   .launches = std::ssize(stages(problem)),
                   .experts = work.live_experts,
                   .expected_experts = expected_distinct(load, problem.routing.tokens()),
                   .weight_bytes = work.weight_bytes,
                   .activation_bytes = work.moved_bytes,
                   .floor_seconds = floor_seconds(work, machine)};
    cost.rounds = round_count(cost.tiles, problem.ctas);
    cost.expected_weight_bytes =
        cost.expected_experts * static_cast<double>(expert_weight_bytes(problem));
    return cost;
}

Result<Split> split_batch(const Problem& whole, const Routing& first, const Routing& second,
                          const Load& load, const Machine& machine) {
    const std::vector<std::int32_t> all = count_rows(whole.routing), one = count_rows(first),
                                    two = count_rows(second);
    if (one.size() != all.size() || two.size() != all.size())
        return fail(Code::kInvalidArgument,
                    "split: expected {} experts in each half as in the whole, got {} and {}",
                    all.size(), one.size(), two.size());
    for (std::size_t e = 0; e < all.size(); ++e)
        if (one[e] + two[e] != all[e])
            return fail(Code::kInvalidArgument,
                        "split: expert {}: expected halves that add up to {} rows, got {} + {}", e,
                        all[e], one[e], two[e]);
    Split split{.whole = batch_cost(whole, load, machine)};
    Problem part = whole;
    part.routing = first;
    split.first = batch_cost(part, load, machine);
    part.routing = second;
    split.second = batch_cost(part, load, machine);
    split.halves = split.first;
    split.halves += split.second;
    return split;
}

double break_even_seconds(const Split& split, double launch_seconds) {
    const auto launches = static_cast<double>(split.halves.launches - split.whole.launches);
    return split.halves.floor_seconds - split.whole.floor_seconds + launches * launch_seconds;
}

double relative_change(double before, double after) {
    LR_CHECK(before != 0);
    return after / before - 1;
}

} // namespace lr::experts
