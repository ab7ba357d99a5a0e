// SPDX-License-Identifier: Apache-2.0
//
// model/synth.h: checkpoints of any size with synthetic weights, for tests, timing and goldens.
//
// A checkpoint is described by a plan (every file tensor with its dtype, shape and distribution,
// derived from the tensor table) and written from it as a stream: memory stays below 256 MiB
// whatever the model. Values come from numerics::CounterRng, so Python and a GPU can make the same
// bits (tools/goldens/counter_rng.py).
//
// Values. Element i of a tensor is element `first` + i of the stream
// CounterRng(stream, seed), where `stream` is the full file name of the tensor in the plain
// release ("model.language_model.layers.3.mlp.gate.weight"). Experts that are stored one by one
// read the stream of the fused stack at their place in it. So one seed is one model: its fp8-block
// checkpoint is the quantisation of its bf16 checkpoint.
//   bf16 tensor    the f32 value, rounded to BF16
//   f32 tensor     the f32 value
//   fp8-block      quantize_fp8_block (BF16 scales) of the BF16 values; weight, then
//                  weight_scale_inv
//
// Distributions: activations stay O(1) through any number of layers, every path of the model
// matters, logits have a standard deviation of about 3.
//   embed_tokens            N(0, 1); tied: N(0, 9/D)
//   lm_head                 N(0, 9/D)
//   zero-centred norms      N(0, 0.1^2)
//   linear_attn.norm        N(1, 0.1^2), F32 (see SynthOptions)
//   A_log                   U[0, 2.7], F32 (likewise);    dt_bias  U[-6, -2]
//   conv1d                  N(0, 0.4^2)
//   router                  N(0, 4/D): router logits have a standard deviation of 2
//   other [N, K] matrices   N(0, 1/K); those that write to the residual  N(0, 0.25/K)
//
// A folder also gets config.json, generation_config.json, tokenizer.json and tokenizer_config.json:
// a byte-level tokenizer whose token id is the byte, with Qwen's added tokens at their released ids
// where the vocabulary reaches that far, else from 256 on.
#pragma once

#include "checkpoint/safetensors_writer.h"
#include "core/json.h"
#include "core/status.h"
#include "core/thread_pool.h"
#include "model/config.h"
#include "model/tensor_table.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lr::model {

struct Distribution {
    enum class Kind : std::uint8_t { kNormal, kUniform };
    Kind kind = Kind::kNormal;
    double a = 0.0; // mean, or lower bound
    double b = 1.0; // standard deviation, or upper bound
};

// One tensor of the file, and the scales that follow it when it is quantised.
struct SynthTensor {
    checkpoint::TensorSpec spec;
    std::optional<checkpoint::TensorSpec> scale; // weight_scale_inv, when spec.dtype is kE4M3
    std::string stream;
    std::int64_t first = 0; // element of the stream that is element 0 here
    Distribution distribution;
};

// Every tensor of a checkpoint of this model, in file order (F32 tensors first, so that each tensor
// is aligned; then as the table lists them). MTP tensors are there when the config has MTP layers;
// set config.mtp_layers to 0 to leave them out. Only kPlain and kFp8Block entries (checked).
std::vector<SynthTensor> synth_plan(const Model& model);
std::int64_t synth_bytes(const std::vector<SynthTensor>& plan);

// {"seed", "tensors": [{"name", "dtype", "shape", "stream", "first", "distribution", "a", "b"}]},
// with "scale": {"name", "shape"} on quantised tensors.
Json synth_plan_to_json(const std::vector<SynthTensor>& plan, std::uint64_t seed);

// Elements [begin, begin + count) of a tensor with a bf16 or f32 dtype, as the file's bytes.
void synth_values(const SynthTensor& tensor, std::uint64_t seed, std::int64_t begin,
                  std::int64_t count, std::byte* out);

// The config with `layers` layers (>= 1) that repeat its pattern.
Config with_layers(const Config& config, std::int64_t layers);

struct SynthOptions {
    WeightFormat format = WeightFormat::kPlain; // or kFp8Block
    std::uint64_t seed = 0;
    bool overwrite = false; // replace a checkpoint that is already there
    // How releases differ in storing one model: plain experts one by one instead of in a stack (as
    // fp8-block always has them), and A_log and linear_attn.norm in BF16 instead of F32.
    bool split_experts = false;
    bool bf16_vectors = false;
    std::string plan_file; // write the plan there as JSON; empty: nowhere
    std::int64_t max_shard_bytes = 5'000'000'000;
    std::int64_t chunk_bytes = std::int64_t{64} << 20; // of one tensor made at a time
};

struct SynthReport {
    std::int64_t tensors = 0;
    std::int64_t bytes = 0;
    std::int64_t files = 0; // of weights
};

// Writes the checkpoint into `folder`, which is made when absent. Progress goes to the log. Errors:
// kInvalidArgument for a config that cannot be (check_config), another format, a vocabulary too
// small for the tokenizer, or a folder that holds a checkpoint already; kResourceExhausted when the
// disk is too small for it; kInternal for errors of the system.
Result<SynthReport> synth_checkpoint(const std::string& folder, const Config& config,
                                     const SynthOptions& options, ThreadPool& pool);

} // namespace lr::model
