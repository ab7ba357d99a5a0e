// SPDX-License-Identifier: Apache-2.0
#include "experts/work.h"

#include "experts/tiles.h"

#include <algorithm>

namespace lr::experts {
namespace {

constexpr std::int64_t kScaled = 128; // features, or weight rows and columns, of one FP8 scale
constexpr std::int64_t kBf16 = 2, kF32 = 4;

// Bytes of a row of `features`.
std::int64_t bf16_row(std::int64_t features) {
    return kBf16 * features;
}

bool quantises(numerics::WeightFormat weights) {
    using numerics::WeightFormat;
    return weights == WeightFormat::kFp8Block || weights == WeightFormat::kFp8Channel ||
           weights == WeightFormat::kFp8Tensor;
}

// The same as a GEMM reads it.
std::int64_t operand_row(numerics::WeightFormat weights, std::int64_t features) {
    if (!quantises(weights))
        return bf16_row(features);
    const bool grouped = weights == numerics::WeightFormat::kFp8Block;
    return features + kF32 * (grouped ? block_count(features, kScaled) : 1);
}

// Rows of each kind that the stages walk.
struct Walk {
    std::int64_t live = 0;
    std::int64_t tokens = 0; // rows of x that quantisation reads
    std::int64_t pairs = 0;  // rows of everything behind the first GEMM
    std::int64_t computed = 0;
    std::int64_t zeroed = 0;
};

Walk walk_of(const Problem& p, const Launch& launch) {
    const BlockFill fill = row_fill(launch);
    Walk walk{.live = fill.live_rows, .computed = fill.live_rows};
    for (const RowBlock& block : launch.blocks)
        if (block.action == Action::kZero)
            walk.zeroed += launch.list ? block.live : launch.block;
    if (launch.list) {
        walk.tokens = p.layout == Layout::kTokenMajor ? p.routing.tokens() : allocated_rows(p);
        walk.pairs = launch.list->rows;
        return walk;
    }
    if (p.layout == Layout::kAlignedEnd)
        walk.computed = fill.covered_rows;
    walk.tokens = walk.pairs = walk.computed;
    return walk;
}

// A stage that moves `row_bytes` for each row, of which `live` are live.
Stage stage(std::string name, std::int64_t rows, std::int64_t live, std::int64_t row_bytes) {
    return {std::move(name), rows, rows * row_bytes, std::min(rows, live) * row_bytes};
}

// A GEMM: live and padding rows read and write, zeroed ones are written.
Stage gemm_stage(const Gemm& gemm, const Walk& walk, std::int64_t read, std::int64_t write) {
    return {fmt::format("{} GEMM", gemm.name), walk.computed + walk.zeroed,
            walk.computed * (read + write) + walk.zeroed * write, walk.live * (read + write)};
}

Failure out_of_range(const char* what, std::int64_t value, std::int64_t end) {
    return fail(Code::kInvalidArgument, "element: {}: expected 0 to {}, got {}", what, end - 1,
                value);
}

// Where the row stands in the list, and the program that has its block and column.
void find_program(const Problem& p, const Launch& launch, std::int64_t column, Element& element) {
    std::int64_t m = -1;
    if (launch.list) {
        const auto& ids = launch.list->sorted_ids;
        element.position = std::find(ids.begin(), ids.end(), element.row) - ids.begin();
        m = element.position / launch.block;
        element.local_row = element.position % launch.block;
    } else {
        for (std::size_t b = 0; b < launch.blocks.size(); ++b)
            if (launch.blocks[b].action == Action::kCompute &&
                launch.blocks[b].first <= element.row &&
                element.row < launch.blocks[b].first + launch.block)
                m = static_cast<std::int64_t>(b);
        element.local_row = element.row - launch.blocks[static_cast<std::size_t>(m)].first;
    }
    element.program = program_of(launch, p.tiling, m, column / p.tiling.columns);
}

} // namespace

std::array<Gemm, 2> gemms(const Problem& p) {
    return {Gemm{"gate and up", 2 * p.width, p.hidden}, Gemm{"down", p.hidden, p.width}};
}

std::int64_t depth_steps(const Gemm& gemm, const Tiling& tiling) {
    return block_count(gemm.depth, tiling.depth);
}

std::int64_t expert_weight_bytes(const Problem& p) {
    std::int64_t bytes = 0;
    for (const Gemm& gemm : gemms(p))
        bytes += numerics::weight_format_bytes(p.weights, DType::kBF16, gemm.columns, gemm.depth);
    return bytes;
}

std::vector<Stage> stages(const Problem& p) {
    const auto [gate_up, down] = gemms(p);
    const Walk walk = walk_of(p, plan_launch(p, gate_up.columns));
    const std::int64_t x = p.hidden, two = gate_up.columns, z = p.width;
    const std::int64_t x_codes = operand_row(p.weights, x), z_codes = operand_row(p.weights, z);
    const bool codes = quantises(p.weights);
    std::vector<Stage> all;
    if (codes && p.layout == Layout::kExpertMajor) // dead slots are not read, but written
        all.push_back({"unpack FP8 slots to bf16", walk.pairs,
                       walk.live * x_codes + walk.pairs * bf16_row(x),
                       walk.live * (x_codes + bf16_row(x))});
    if (codes)
        all.push_back(stage("quantise x to FP8", walk.tokens, walk.live, bf16_row(x) + x_codes));
    all.push_back(gemm_stage(gate_up, walk, x_codes, bf16_row(two)));
    all.push_back(stage("silu(gate) * up", walk.computed, walk.live, bf16_row(two) + bf16_row(z)));
    if (codes)
        all.push_back(stage("quantise z to FP8", walk.pairs, walk.live, bf16_row(z) + z_codes));
    all.push_back(gemm_stage(down, walk, z_codes, bf16_row(x)));
    return all;
}

Work measure(const Problem& p) {
    const Launch launch = plan_launch(p, gemms(p)[0].columns);
    const BlockFill fill = row_fill(launch);
    const std::vector<std::int32_t> counts = count_rows(p.routing);
    Work work{.live_rows = fill.live_rows};
    work.live_experts = std::count_if(counts.begin(), counts.end(), [](auto c) { return c > 0; });
    work.weight_bytes = work.live_experts * expert_weight_bytes(p);
    work.tile_weight_bytes = fill.blocks * expert_weight_bytes(p);
    for (const Stage& one : stages(p)) {
        work.live_bytes += one.live_bytes;
        work.moved_bytes += one.bytes;
    }
    const std::int64_t row_flops = 6 * p.hidden * p.width;
    work.flops = fill.live_rows * row_flops;
    for (const Gemm& gemm : gemms(p))
        work.tile_flops += 2 * fill.covered_rows * gemm.depth *
                           block_count(gemm.columns, p.tiling.columns) * p.tiling.columns;
    return work;
}

double floor_seconds(const Work& work, const Machine& machine) {
    const auto bytes = static_cast<double>(work.weight_bytes + work.live_bytes);
    return std::max(bytes / machine.bytes_per_second,
                    static_cast<double>(work.flops) / machine.flops_per_second);
}

Result<Element> trace_element(const Problem& p, const Gemm& gemm, std::int64_t row,
                              std::int64_t column, std::int64_t depth) {
    const Launch launch = plan_launch(p, gemm.columns);
    const std::vector<std::int32_t> ids = launch.list ? listed_ids(p) : place(p).expert;
    if (row < 0 || row >= std::ssize(ids))
        return out_of_range("row", row, std::ssize(ids));
    if (column < 0 || column >= gemm.columns)
        return out_of_range("column", column, gemm.columns);
    if (depth < 0 || depth >= gemm.depth)
        return out_of_range("depth", depth, gemm.depth);
    Element element{.row = row, .column = column, .depth = depth};
    element.expert = ids[static_cast<std::size_t>(row)];
    if (element.expert < 0)
        return fail(Code::kInvalidArgument,
                    "element: expected a row of an expert, got row {}, "
                    "which is dead",
                    row);
    const std::int64_t steps = block_count(gemm.depth, kScaled);
    // The list names choices; those of one token read one row of x, but a row each behind it.
    const bool first = gemm.depth == p.hidden && gemm.columns == 2 * p.width;
    const bool shared = p.layout == Layout::kTokenMajor || p.layout == Layout::kRankMajor;
    const std::int64_t read = first && shared ? row / p.routing.per_token : row;
    element.activation = read * gemm.depth + depth;
    element.weight = (element.expert * gemm.columns + column) * gemm.depth + depth;
    element.activation_scale = read * steps + depth / kScaled;
    element.weight_scale =
        (element.expert * block_count(gemm.columns, kScaled) + column / kScaled) * steps +
        depth / kScaled;
    element.output = row * gemm.columns + column;
    find_program(p, launch, column, element);
    return element;
}

} // namespace lr::experts
