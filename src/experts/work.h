// SPDX-License-Identifier: Apache-2.0
//
// experts/work.h: bytes, operations and element addresses of the two expert GEMMs and of what lies
// between them.
//
//   gate and up  [m, D] x w13[e] [2I, D]^T -> [m, 2I];   silu(gate) * up -> [m, I]
//   down         [m, I] x w2[e]  [D, I]^T  -> [m, D]
//   FLOPs        2 * m * 2I * D + 2 * m * D * I = 6 * m * D * I
//
// m live rows of an expert, D hidden, I expert width. Weights of an expert that has rows move at
// least once: that, with the live rows' activations, is the floor. Activations are bf16; beside FP8
// weights they are quantised before each GEMM to FP8 codes with f32 scales, one for 128 features
// (block weights) or one a row (channel and tensor weights).
#pragma once

#include "experts/launch.h"

#include <array>

namespace lr::experts {

// One of the two GEMMs.
struct Gemm {
    const char* name;     // "gate and up", "down"
    std::int64_t columns; // N
    std::int64_t depth;   // K
};
std::array<Gemm, 2> gemms(const Problem& problem);

// Steps along the sum: ceil(K / BK). The last may be short.
std::int64_t depth_steps(const Gemm& gemm, const Tiling& tiling);

// Weights of one expert, both GEMMs, scales included (numerics/weight_format.h).
std::int64_t expert_weight_bytes(const Problem& problem);

// What one stage of the expert path moves.
struct Stage {
    std::string name;
    std::int64_t rows = 0;       // that it walks
    std::int64_t bytes = 0;      // that these move, read and written; weights not counted
    std::int64_t live_bytes = 0; // of these, for live rows
};
// The stages that a layout needs, in order. Which rows each walks:
//   index lists   the traced chain: quantisation walks what is allocated; the GEMMs compute live
//                 rows and write zeros to the dead ones that the list names; expert-major first
//                 unpacks its FP8 slots to bf16, dead ones as zeros (beside FP8 weights)
//   endpoints     live rows alone
//   aligned-end   live rows and the padding of their experts; the down GEMM also writes the zeros
//                 of the rest of its buffer
std::vector<Stage> stages(const Problem& problem);

struct Work {
    std::int64_t live_rows = 0;
    std::int64_t live_experts = 0;
    std::int64_t weight_bytes = 0;      // once for each live expert
    std::int64_t tile_weight_bytes = 0; // as tiles ask for them: once for each computing row block
    std::int64_t live_bytes = 0;        // activations of live rows, all stages
    std::int64_t moved_bytes = 0;       // activations of all rows that the stages walk
    std::int64_t flops = 0;             // of live rows
    std::int64_t tile_flops = 0;        // of whole tiles
};
Work measure(const Problem& problem);

// What a machine can do at best.
struct Machine {
    double bytes_per_second = 0, flops_per_second = 0; // above 0
};
// The least time for the weights once, the live rows' activations and operations: the larger of
// bytes / bandwidth and FLOPs / peak.
double floor_seconds(const Work& work, const Machine& machine);

// Element offsets of what one product of the GEMM touches, all buffers dense: output row q and
// column n of the expert, feature k of the sum. FP8 with a scale for 128 features of a row, and for
// 128 x 128 of a weight.
struct Element {
    std::int64_t row = 0, column = 0, depth = 0; // q, n, k
    std::int64_t activation = 0, weight = 0, activation_scale = 0, weight_scale = 0, output = 0;
    std::int64_t position = -1, local_row = -1; // in the list, and in its block; -1: no list
    std::int64_t program = -1;                  // that computes it
    std::int32_t expert = -1;
    friend bool operator==(const Element&, const Element&) = default;
};
// kInvalidArgument where row, column or depth is out of range, or the row has no expert.
Result<Element> trace_element(const Problem& problem, const Gemm& gemm, std::int64_t row,
                              std::int64_t column, std::int64_t depth);

} // namespace lr::experts
