// SPDX-License-Identifier: Apache-2.0
//
// cli/bench/op_case.h: one op with everything it reads: random weights, activations and states.
#pragma once

#include "core/buffer.h"
#include "core/thread_pool.h"
#include "ops/any_op.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lr::cli {

// Sizes by the letters of core/dims.h. An op takes what its contract names.
struct OpSpec {
    std::string op = "linear"; // a stem of op_names()
    ops::WeightFormat weights = ops::WeightFormat::kPlain;
    ops::ActivationFormat activations = ops::ActivationFormat::kPlain;
    std::int64_t rows = 1;                                // n
    std::int64_t outputs = 0, inputs = 0;                 // N, K of the weight; of experts: of each
    std::int64_t experts = 0, per_token = 0;              // E, K
    std::int64_t q_heads = 0, kv_heads = 0, head_dim = 0; // attention
    std::int64_t context = 0;                             // tokens that each row of attention sees
    std::int64_t k_heads = 0, v_heads = 0, k_dim = 0, v_dim = 0; // recurrent_update
};

const std::vector<std::string>& op_names();
bool has_weights(const std::string& op);

class OpCase {
  public:
    // Different seeds give different numbers. kInvalidArgument where the op's own check refuses the
    // sizes, kResourceExhausted where it would hold more than `most_bytes`.
    static Result<std::unique_ptr<OpCase>> make(const OpSpec& spec, std::uint64_t seed,
                                                std::int64_t most_bytes);

    const ops::AnyArgs& args() const { return args_; }
    // Gives every row new experts, drawn uniformly; nothing for other ops.
    void reroute(std::uint64_t round, ThreadPool& pool);
    std::int64_t bytes() const { return bytes_; } // of memory that it holds

  private:
    OpCase(const OpSpec& spec, std::uint64_t seed, std::int64_t most_bytes)
        : spec_(spec), seed_(seed), most_bytes_(most_bytes) {}

    enum class Fill : std::uint8_t { kValues, kScales, kZero };
    Result<View> tensor(DType dtype, Shape shape, Fill fill);
    Result<View> integers(Shape shape, std::int64_t first, std::int64_t step);
    Result<ops::Weight> weight(Shape shape);
    Status activations(ConstView& x, ConstView& scale, float& global, std::int64_t rows);

    Status build();
    Status build_experts();
    Status build_linear();
    Status build_gate_up();
    Status build_down();
    Status build_routing();
    Status build_attention();
    Status build_recurrent();

    const OpSpec spec_;
    const std::uint64_t seed_;
    const std::int64_t most_bytes_;
    std::int64_t bytes_ = 0;
    std::vector<Buffer> memory_;
    std::vector<ops::WeightPart> parts_;
    std::optional<ops::RoutingIndicesArgs> routing_;
    View chosen_; // [n, K] experts of each row
    ops::AnyArgs args_;
};

} // namespace lr::cli
