// SPDX-License-Identifier: Apache-2.0
//
// model/synth_files.h: the JSON files of a synthetic checkpoint (model/synth.h), as values.
#pragma once

#include "core/json.h"
#include "core/status.h"
#include "model/config.h"
#include "model/tensor_table.h"

#include <cstdint>
#include <string>
#include <vector>

namespace lr::model {

// config_to_json, with the quantization_config of the released fp8-block files where the model's
// entries have that format.
Json synth_config_json(const Model& model);

// A byte-level tokenizer: id = byte for 0..255, no merges, Qwen's added tokens from `added_base`.
struct SynthTokenizer {
    std::int64_t added_base = 0;
    std::int64_t end_of_text = 0; // <|endoftext|>
    std::int64_t end_of_turn = 0; // <|im_end|>
};
// kInvalidArgument when the vocabulary has no room for the bytes and the added tokens.
Result<SynthTokenizer> synth_tokenizer(std::int64_t vocab_size);
Json synth_tokenizer_json(const SynthTokenizer& tokenizer);
Json synth_tokenizer_config_json(const SynthTokenizer& tokenizer);
Json synth_generation_config_json(const SynthTokenizer& tokenizer);

} // namespace lr::model
