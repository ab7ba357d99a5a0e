// SPDX-License-Identifier: Apache-2.0
//
// model/config.h: the numbers of one text model of the Qwen3.5 family, as its config.json gives
// them.
//
// A released file nests them in `text_config`; a text-only export has them at top level. Both load.
// Fields that would change the mathematics and that this engine does not compute are refused by
// name rather than ignored.
#pragma once

#include "core/json.h"
#include "core/status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lr::model {

enum class LayerKind : std::uint8_t { kGdn, kAttention };

struct Config {
    std::string model_type; // "qwen3_5_moe_text", "qwen3_5_text"

    std::int64_t vocab_size = 0; // V, embedding rows, padding rows included
    std::int64_t hidden = 0;     // D
    std::vector<LayerKind> layers;
    std::int64_t max_positions = 0;
    float rms_eps = 1e-6f;
    std::optional<bool> tied; // absent: lm_head.weight decides

    // full attention
    std::int64_t q_heads = 0;  // Hq
    std::int64_t kv_heads = 0; // Hkv
    std::int64_t head_dim = 0;
    std::int64_t rotary_dim = 0;
    float rope_theta = 1e7f;

    // gated delta net
    std::int64_t k_heads = 0; // Hk
    std::int64_t v_heads = 0; // Hv
    std::int64_t k_dim = 0;   // dk
    std::int64_t v_dim = 0;   // dv
    std::int64_t conv_kernel = 4;

    // feed-forward: experts > 0 is a mixture, else dense
    std::int64_t experts = 0;             // E
    std::int64_t experts_per_token = 0;   // K
    std::int64_t expert_width = 0;        // I
    std::int64_t shared_expert_width = 0; // Is
    std::int64_t ffn_width = 0;           // F, dense models

    std::int64_t mtp_layers = 0;

    bool moe() const { return experts > 0; }
    std::int64_t layer_count() const { return static_cast<std::int64_t>(layers.size()); }
    std::int64_t count(LayerKind kind) const;
    std::int64_t conv_dim() const { return 2 * k_heads * k_dim + v_heads * v_dim; }
    std::int64_t value_dim() const { return v_heads * v_dim; }
    std::int64_t attention_width() const { return q_heads * head_dim; }
};

// What generation_config.json adds; every field optional in the file.
struct GenerationConfig {
    std::vector<std::int32_t> eos_ids; // generation ends at any of them
    std::optional<double> temperature, top_p, min_p, repetition_penalty;
    std::optional<std::int64_t> top_k;
};

// Full attention at layer i when (i + 1) % interval == 0.
std::vector<LayerKind> interval_layers(std::int64_t layers, std::int64_t interval);

// `root` is the whole config.json; `where` names it in errors.
Result<Config> parse_config(const Json& root, const std::string& where);
// Shape rules that hold whatever the source: divisibility, positive sizes, kernel width.
Status check_config(const Config& config, const std::string& where);
// The config.json of this config, in the released nesting.
Json config_to_json(const Config& config);

// Reads folder/config.json.
Result<Config> load_config(const std::string& folder);
// Reads folder/generation_config.json if there is one; else, and for eos, config.json's
// eos_token_id.
Result<GenerationConfig> load_generation_config(const std::string& folder);

} // namespace lr::model
