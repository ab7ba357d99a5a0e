// SPDX-License-Identifier: Apache-2.0
//
// graph/step.h: one step of the model as data. The step is a graph, and the graph is the program:
// memory plan, execution, capture keys, trace names, cost tables and tool output are derived from
// it.
//
// Nodes have the names and numbers of the traced kernel graph ("L17.8 output_rmsnorm_silu_gate"):
// four per-layer paths, prefill-gdn (36 nodes), prefill-attention (26), decode-gdn (24),
// decode-attention (23), between a prologue ("pro.1 embed_tokens") and an epilogue ("epi.3
// lm_head_gemm"). Rules:
//   - a weight format that needs no input quantisation omits that node; the other numbers stay
//   - another format renames only the format part (routed_down_fp4_gemm, routed_down_bf16_gemm)
//   - with one rank a node that only communicates stays and is an alias: no launch, no bytes
//   - two quantisations of one tensor to one format are one node; `also` keeps the other's number
//   - dense models number their own FFN nodes after the second norm
#pragma once

#include "core/status.h"
#include "graph/symbol.h"
#include "model/tensor_table.h"
#include "ops/any_op.h"

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace lr::graph {

enum class Phase : std::uint8_t { kPrefill, kDecode };

// Nodes of one lane run in list order; two lanes are ordered only by their data.
enum class Lane : std::uint8_t { kMain, kShared };
inline constexpr std::size_t kLanes = 2;

enum class Role : std::uint8_t { kInput, kWeight, kState, kActivation, kOutput };

// Device data that the caller writes before each replay. Shapes in parentheses; i32 unless said.
enum class Input : std::uint8_t {
    kTokenIds,      // (n)
    kGenerated,     // (n): 0 a token of the prompt, 1 one that was generated
    kPositions,     // (n)
    kLiveRows,      // (1) n_live
    kSlot,          // (n) decode, (B) prefill: state slot, -1 padding
    kKvSlot,        // (n) i64: page * 64 + offset where the row's K and V go, -1 none
    kPageTable,     // (B, MP)
    kRowSequence,   // (n): row of page_table, -1 padding
    kLogitRows,     // (m): row whose logits are wanted, -1 none
    kLiveLogits,    // (1)
    kTemperature,   // (m) f32; this and the next ten: ops/sampling/sample.h
    kTopK,          // (m)
    kTopP,          // (m) f32
    kMinP,          // (m) f32
    kRepetition,    // (m) f32
    kFrequency,     // (m) f32
    kPresence,      // (m) f32
    kCountSlot,     // (m)
    kBiasRange,     // (m, 2)
    kSeed,          // (m) i64
    kStream,        // (m)
    kDrawPosition,  // (m): position of the token drawn, the draw's counter
    kLogprobWanted, // (m): ops/sampling/token_logprobs.h
    kLogprobTarget, // (m)
    kBiasId,        // (NB)
    kBiasValue,     // (NB) f32
    kCuSeqlens,     // (B+1) prefill: first row of each sequence
    kPrefixLen,     // (B) prefill: tokens already in the state
    kChunkRow,      // (NC) prefill: first row of each chunk
    kChunkLen,      // (NC) prefill: rows, 0 = unused
    kSeqChunk,      // (B+1) prefill: first chunk of each sequence
    kCount,
};
std::string_view input_name(Input input);

// kTokenCounts belongs to no layer: layer -1.
enum class StateKind : std::uint8_t { kConv, kSsm, kKeys, kValues, kTokenCounts };

// Logit biases that a sequence may have.
inline constexpr std::int64_t kMaxLogitBias = 300;

// What a step is captured for. Buckets: n, B and m are capacities; live extents are inputs.
struct StepShape {
    Phase phase = Phase::kDecode;
    std::int64_t rows = 1;       // n
    std::int64_t sequences = 1;  // B; decode: equals rows
    std::int64_t logit_rows = 1; // m
    std::int64_t context = 1;    // T: tokens a sequence can reach
    std::int64_t slots = 1;      // S
    std::int64_t kv_pages = 1;   // P

    std::int64_t pages_per_sequence() const { return (context + ops::kKvPage - 1) / ops::kKvPage; }
    std::int64_t chunks() const { return rows / ops::kGdnChunk + sequences; }
    std::int64_t biases() const { return sequences * kMaxLogitBias; } // NB
    friend bool operator==(const StepShape&, const StepShape&) = default;
};

struct StepOptions {
    ops::Precision precision = ops::Precision::kModel;
    ops::Numerics numerics = ops::Numerics::kHf;
    DType state_dtype = DType::kF32; // GDN matrix state
    bool w4a4 = false;               // NVFP4 with calibrated scales: quantise activations too
    bool a16 = false;                // quantise no activations: W8A16, W4A16; goes before w4a4
    std::int32_t expert_align = 1;   // A
    std::int32_t vocab_limit = 0;    // ids at or beyond it are never sampled; 0: none masked
};

struct Tensor {
    std::string name; // "L17.H", "embed_tokens", "L17.ssm_state"
    DType dtype = DType::kF32;
    Shape shape;
    Role role = Role::kActivation;
    std::int32_t entry = -1; // kWeight: index into Model::entries()
    std::int32_t layer = -1; // kState
    StateKind state = StateKind::kConv;
    Input input = Input::kCount; // kInput

    std::int64_t bytes() const { return dtype_bytes(dtype, shape.count()); }
};

enum class Access : std::uint8_t { kRead, kWrite, kUpdate };

struct Use {
    const char* slot; // the op's name for it: "residual_out"
    TensorId tensor;
    Access access;
};

struct Node {
    std::string id;   // "L17.8"
    std::string name; // "output_rmsnorm_silu_gate"
    std::int32_t layer = -1;
    std::int32_t number = 0;
    Lane lane = Lane::kMain;
    bool alias = false;             // nothing to do with one rank
    std::vector<std::int32_t> also; // numbers of nodes that this one is too
    ops::AnyArgs args;              // views hold symbols
    std::vector<Use> uses;          // in the op's visit order
    ops::Cost cost;                 // zero for an alias

    std::string label() const { return id + " " + name; }
};

// `to` needs what `from` did to `tensor`.
struct Edge {
    std::int32_t from, to;
    TensorId tensor;
};

// What a step leaves for the host: the tensors of the epilogue's ops.
struct Outputs {
    TensorId logits = -1, tokens = -1, sample_status = -1;
    TensorId scored_id = -1, rank = -1, logprob = -1, top_id = -1, top_logprob = -1;
};

struct Step {
    StepShape shape;
    StepOptions options;
    model::Shard shard;
    std::vector<model::LayerKind> layers;
    std::vector<Tensor> tensors;
    std::vector<Node> nodes; // a topological order
    std::vector<Edge> edges; // by (from, to), each pair of nodes and tensor once
    std::array<TensorId, static_cast<std::size_t>(Input::kCount)> inputs{}; // -1: not in this step
    Outputs outputs;

    TensorId input(Input which) const { return inputs[static_cast<std::size_t>(which)]; }
    ops::Cost total_cost() const;
};

// Every shape error names the node and the tensor. Formats that a checkpoint cannot yet be loaded
// in build too.
Result<Step> build_step(const model::Model& model, const model::Shard& shard,
                        const StepShape& shape, const StepOptions& options = {});

} // namespace lr::graph
