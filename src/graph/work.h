// SPDX-License-Identifier: Apache-2.0
//
// graph/work.h: what a node or a launch has to move and to compute, as its op counts it.
#pragma once

#include "graph/plan.h"

#include <array>

namespace lr::graph {

// What does the arithmetic: matrix units by the activations' format (of which bf16 also multiplies
// weights of fewer bits that are widened first), and everything else.
enum class Unit : std::uint8_t { kBf16, kFp8, kFp4, kF32 };
inline constexpr std::size_t kUnits = 4;
std::string_view unit_name(Unit unit); // "bf16", "fp8", "fp4", "f32"

struct Work {
    std::int64_t read_bytes = 0, write_bytes = 0;
    std::int64_t weight_bytes = 0; // of read_bytes: matrices and vectors of the model
    std::int64_t state_bytes = 0;  // of read_bytes; updated states count in write_bytes too
    std::int64_t link_bytes = 0;   // come in from other ranks, at least
    std::array<std::int64_t, kUnits> flops{};

    std::int64_t bytes() const { return read_bytes + write_bytes; }
    std::int64_t total_flops() const;
    Work& operator+=(const Work& other);
};

// A node alone; nothing for an alias. Beside Cost::weight_bytes, which are matrices, its
// weight_bytes hold the vectors (norms, A_log, dt_bias) that the op lists among its inputs. A sum
// over p ranks takes in 2 (p-1)/p of its rows, a gather (p-1)/p of its result.
Work node_work(const Step& step, const Node& node);

// Whether other ranks take part.
bool communicates(const Node& node);

// A launch of several nodes moves less than they would alone:
//   - what it swallows is not moved at all
//   - an activation that it writes is not read back, and one that several of its nodes read is read
//     once
// The work of a node in stages counts with its last one; what an expansion's stages hand to one
// another is not counted, what a shift's hand on is.
Work launch_work(const Step& step, const Plan& plan, std::size_t launch);

} // namespace lr::graph
