// SPDX-License-Identifier: Apache-2.0
//
// ops/op.h: what every op header shares.
//
// One op = one header: `Args` (views and parameters), `check` (the shape contract, executable),
// `cost` (bytes and FLOPs as a formula), and a comment with the ten contract labels. The header is
// the only place where the promise is made; cpu/ and cuda/ files of the same stem implement it.
//
// Args list their tensors once more in `visit`, so that the graph can enumerate, place and bind
// them without a second description:
//
//   template <typename Visitor> void visit(Visitor& v) {
//       v.in("x", x);               // ConstView&   read
//       v.weight("w", w);           // Weight&      read, resident
//       v.state("conv_state", s);   // View&        read and written in place
//       v.out("y", y);              // View&        written, never read
//   }
//
// Order is fixed: inputs, weights, states, outputs. A null view (no data, rank 0) is an absent
// optional.
//
// Rows: `n_live` ([1] i32) is a device scalar. Rows at or beyond it are padding: they are not read,
// touch no state, and their output rows are zero.
#pragma once

#include "core/dims.h"
#include "core/ranks.h"
#include "core/view.h"

#include <cstdint>

namespace lr::ops {

// kModel: every rounding of the engine contract. kF32: none (activations are f32 tensors); the CPU
// reference's proof of the mathematics against float32 oracles.
enum class Precision : std::uint8_t { kModel, kF32 };

// Which residual the fused norm reads: kHf the one rounded to bf16, kSeed the unrounded sum.
enum class Numerics : std::uint8_t { kHf, kSeed };

// Work of one launch as counted from its shapes, each tensor moved once. weight_bytes and
// state_bytes are parts of read_bytes (states count again in write_bytes).
struct Cost {
    std::int64_t read_bytes = 0;
    std::int64_t write_bytes = 0;
    std::int64_t weight_bytes = 0;
    std::int64_t state_bytes = 0;
    std::int64_t flops = 0;

    std::int64_t bytes() const { return read_bytes + write_bytes; }
    Cost& operator+=(const Cost& other) {
        read_bytes += other.read_bytes;
        write_bytes += other.write_bytes;
        weight_bytes += other.weight_bytes;
        state_bytes += other.state_bytes;
        flops += other.flops;
        return *this;
    }
    friend bool operator==(const Cost&, const Cost&) = default;
};

// Expected distinct experts that n tokens touch when each picks K of E uniformly:
// E * (1 - (1 - K/E)^n). An upper bound for skewed routing.
double expected_live_experts(std::int64_t experts, std::int64_t per_token, std::int64_t n);

// Tokens per chunk of the chunked gated delta rule (spec: prefill, C = 64), and tokens per KV page.
inline constexpr std::int64_t kGdnChunk = 64;
inline constexpr std::int64_t kKvPage = 64;

} // namespace lr::ops
