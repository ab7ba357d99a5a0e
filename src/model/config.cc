// SPDX-License-Identifier: Apache-2.0
#include "model/config.h"

#include "core/text_file.h"

#include <algorithm>
#include <charconv>

namespace lr::model {
namespace {

constexpr std::int64_t kMaxDim = std::int64_t{1} << 24;

// A field whose only accepted value is `expected`; absent is accepted too.
Status only_string(const JsonCursor& text, std::string_view key, std::string_view expected) {
    LR_TRY_ASSIGN(const std::string got, text.optional_string(key, expected));
    if (got != expected)
        return fail(Code::kUnsupported, "{}: {}: expected \"{}\", got \"{}\"", text.where(), key,
                    expected, got);
    return {};
}

Status only_bool(const JsonCursor& text, std::string_view key, bool expected) {
    LR_TRY_ASSIGN(const bool got, text.optional_bool(key, expected));
    if (got != expected)
        return fail(Code::kUnsupported, "{}: {}: expected {}, got {}", text.where(), key, expected,
                    got);
    return {};
}

Status refuse_what_changes_the_maths(const JsonCursor& text) {
    LR_TRY(only_string(text, "hidden_act", "silu"));
    LR_TRY(only_bool(text, "attention_bias", false));
    LR_TRY(only_bool(text, "attn_output_gate", true));
    LR_TRY(only_bool(text, "layer_scale", false));
    LR_TRY(only_bool(text, "norm_topk_prob", true));
    LR_TRY_ASSIGN(const std::string gate, text.optional_string("output_gate_type", "swish"));
    if (gate != "swish" && gate != "silu")
        return fail(Code::kUnsupported, "{}: output_gate_type: expected \"swish\", got \"{}\"",
                    text.where(), gate);
    LR_TRY_ASSIGN(const auto mlp_only, text.optional_array("mlp_only_layers"));
    if (mlp_only && !mlp_only->value().as_array().empty())
        return fail(Code::kUnsupported, "{}: mlp_only_layers: expected [], got {}", text.where(),
                    json_excerpt(mlp_only->value()));
    return {};
}

Result<std::vector<LayerKind>> parse_layers(const JsonCursor& text) {
    LR_TRY_ASSIGN(const std::int64_t count, text.required_int("num_hidden_layers", 1, 4096));
    if (!text.has("layer_types")) {
        LR_TRY_ASSIGN(const std::int64_t interval,
                      text.optional_int("full_attention_interval", 4, 1, 4096));
        return interval_layers(count, interval);
    }
    LR_TRY_ASSIGN(const std::vector<std::string> names, text.required_strings("layer_types"));
    if (static_cast<std::int64_t>(names.size()) != count)
        return fail(Code::kInvalidFile,
                    "{}: layer_types: expected num_hidden_layers={} entries, got {}", text.where(),
                    count, names.size());
    std::vector<LayerKind> layers;
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (names[i] == "linear_attention")
            layers.push_back(LayerKind::kGdn);
        else if (names[i] == "full_attention")
            layers.push_back(LayerKind::kAttention);
        else
            return fail(Code::kUnsupported,
                        "{}: layer_types[{}]: expected \"linear_attention\" or "
                        "\"full_attention\", got \"{}\"",
                        text.where(), i, names[i]);
    }
    return layers;
}

Status parse_rope(const JsonCursor& text, Config& config) {
    LR_TRY_ASSIGN(const auto rope, text.optional_object("rope_parameters"));
    const JsonCursor& fields = rope ? *rope : text;
    LR_TRY(only_string(fields, "rope_type", "default"));
    LR_TRY_ASSIGN(const double theta, fields.optional_double("rope_theta", 1e7, 1.0, 1e12));
    LR_TRY_ASSIGN(const double factor,
                  fields.optional_double("partial_rotary_factor", 0.25, 0.0, 1.0));
    config.rope_theta = static_cast<float>(theta);
    config.rotary_dim = static_cast<std::int64_t>(static_cast<double>(config.head_dim) * factor);
    return {};
}

Status parse_attention(const JsonCursor& text, Config& config) {
    LR_TRY_ASSIGN(config.q_heads, text.required_int("num_attention_heads", 1, 4096));
    LR_TRY_ASSIGN(config.kv_heads, text.required_int("num_key_value_heads", 1, 4096));
    LR_TRY_ASSIGN(config.head_dim, text.required_int("head_dim", 2, 1024));
    LR_TRY_ASSIGN(config.k_heads, text.required_int("linear_num_key_heads", 1, 4096));
    LR_TRY_ASSIGN(config.v_heads, text.required_int("linear_num_value_heads", 1, 4096));
    LR_TRY_ASSIGN(config.k_dim, text.required_int("linear_key_head_dim", 1, 1024));
    LR_TRY_ASSIGN(config.v_dim, text.required_int("linear_value_head_dim", 1, 1024));
    LR_TRY_ASSIGN(config.conv_kernel, text.optional_int("linear_conv_kernel_dim", 4, 1, 16));
    return parse_rope(text, config);
}

Status parse_feed_forward(const JsonCursor& text, Config& config) {
    if (config.model_type != "qwen3_5_moe_text") {
        LR_TRY_ASSIGN(config.ffn_width, text.required_int("intermediate_size", 1, kMaxDim));
        return {};
    }
    LR_TRY_ASSIGN(config.experts, text.required_int("num_experts", 1, 65536));
    LR_TRY_ASSIGN(config.experts_per_token,
                  text.required_int("num_experts_per_tok", 1, config.experts));
    LR_TRY_ASSIGN(config.expert_width, text.required_int("moe_intermediate_size", 1, kMaxDim));
    LR_TRY_ASSIGN(config.shared_expert_width,
                  text.required_int("shared_expert_intermediate_size", 1, kMaxDim));
    return {};
}

Status parse_tied(const JsonCursor& root, const JsonCursor& text, Config& config) {
    for (const JsonCursor* cursor : {&root, &text}) {
        if (!cursor->has("tie_word_embeddings"))
            continue;
        LR_TRY_ASSIGN(config.tied, cursor->required_bool("tie_word_embeddings"));
        return {};
    }
    return {};
}

// "qwen3_5_moe" and "qwen3_5_moe_text" name the same text model.
Result<std::string> text_model_type(const JsonCursor& text) {
    LR_TRY_ASSIGN(const std::string type, text.required_string("model_type"));
    for (std::string_view known : {"qwen3_5_moe", "qwen3_5"})
        if (type == known || type == std::string(known) + "_text")
            return std::string(known) + "_text";
    return fail(Code::kUnsupported,
                "{}: model_type: expected qwen3_5_moe[_text] or qwen3_5[_text], got \"{}\"; "
                "liverow runs the Qwen3.5 family only",
                text.where(), type);
}

} // namespace

std::int64_t Config::count(LayerKind kind) const {
    return std::count(layers.begin(), layers.end(), kind);
}

std::vector<LayerKind> interval_layers(std::int64_t layers, std::int64_t interval) {
    std::vector<LayerKind> kinds;
    for (std::int64_t i = 0; i < layers; ++i)
        kinds.push_back((i + 1) % interval == 0 ? LayerKind::kAttention : LayerKind::kGdn);
    return kinds;
}

Result<Config> parse_config(const Json& root_json, const std::string& where) {
    const JsonCursor root(where, root_json);
    LR_TRY(root.expect_object());
    LR_TRY_ASSIGN(const auto nested, root.optional_object("text_config"));
    const JsonCursor& text = nested ? *nested : root;

    Config config;
    LR_TRY_ASSIGN(config.model_type, text_model_type(text));
    LR_TRY(refuse_what_changes_the_maths(text));
    LR_TRY_ASSIGN(config.vocab_size, text.required_int("vocab_size", 1, kMaxDim));
    LR_TRY_ASSIGN(config.hidden, text.required_int("hidden_size", 1, kMaxDim));
    LR_TRY_ASSIGN(config.layers, parse_layers(text));
    LR_TRY_ASSIGN(config.max_positions,
                  text.optional_int("max_position_embeddings", 32768, 1, std::int64_t{1} << 31));
    LR_TRY_ASSIGN(const double eps, text.optional_double("rms_norm_eps", 1e-6, 1e-12, 1.0));
    config.rms_eps = static_cast<float>(eps);
    LR_TRY(parse_attention(text, config));
    LR_TRY(parse_feed_forward(text, config));
    LR_TRY_ASSIGN(config.mtp_layers, text.optional_int("mtp_num_hidden_layers", 0, 0, 8));
    LR_TRY(parse_tied(root, text, config));
    LR_TRY(check_config(config, where));
    return config;
}

Status check_config(const Config& c, const std::string& where) {
    const auto require = [&](bool holds, std::string_view rule) -> Status {
        if (holds)
            return {};
        return fail(Code::kInvalidFile, "{}: {}", where, rule);
    };
    LR_TRY(require(c.q_heads % c.kv_heads == 0,
                   fmt::format("num_attention_heads={} must be a multiple of "
                               "num_key_value_heads={}",
                               c.q_heads, c.kv_heads)));
    LR_TRY(require(c.v_heads % c.k_heads == 0,
                   fmt::format("linear_num_value_heads={} must be a multiple of "
                               "linear_num_key_heads={}",
                               c.v_heads, c.k_heads)));
    LR_TRY(require(c.rotary_dim > 0 && c.rotary_dim % 2 == 0 && c.rotary_dim <= c.head_dim,
                   fmt::format("partial_rotary_factor: rotary dim {} must be even and in "
                               "2..head_dim={}",
                               c.rotary_dim, c.head_dim)));
    LR_TRY(require(c.conv_kernel == 4,
                   fmt::format("linear_conv_kernel_dim: expected 4, got {}", c.conv_kernel)));
    return require(c.moe() || c.ffn_width > 0, "intermediate_size must be positive");
}

namespace {

// The shortest decimal that is this f32: 1e-12 stays in the range that 1e-12f widened leaves.
Json shortest(float value) {
    const std::string text = fmt::format("{}", value);
    double decimal = value;
    std::from_chars(text.data(), text.data() + text.size(), decimal);
    return Json(decimal);
}

} // namespace

Json config_to_json(const Config& c) {
    JsonArray kinds;
    for (LayerKind kind : c.layers)
        kinds.emplace_back(kind == LayerKind::kGdn ? "linear_attention" : "full_attention");
    const bool moe = c.moe();
    std::vector<JsonMember> rope = {
        {"rope_type", Json("default")},
        {"rope_theta", shortest(c.rope_theta)},
        {"partial_rotary_factor",
         Json(static_cast<double>(c.rotary_dim) / static_cast<double>(c.head_dim))},
    };
    std::vector<JsonMember> text = {
        {"model_type", Json(c.model_type)},
        {"vocab_size", Json(c.vocab_size)},
        {"hidden_size", Json(c.hidden)},
        {"num_hidden_layers", Json(c.layer_count())},
        {"layer_types", Json(std::move(kinds))},
        {"num_attention_heads", Json(c.q_heads)},
        {"num_key_value_heads", Json(c.kv_heads)},
        {"head_dim", Json(c.head_dim)},
        {"attn_output_gate", Json(true)},
        {"attention_bias", Json(false)},
        {"linear_num_key_heads", Json(c.k_heads)},
        {"linear_num_value_heads", Json(c.v_heads)},
        {"linear_key_head_dim", Json(c.k_dim)},
        {"linear_value_head_dim", Json(c.v_dim)},
        {"linear_conv_kernel_dim", Json(c.conv_kernel)},
        {"hidden_act", Json("silu")},
        {"rms_norm_eps", shortest(c.rms_eps)},
        {"max_position_embeddings", Json(c.max_positions)},
        {"rope_parameters", Json::object(std::move(rope))},
        {"mamba_ssm_dtype", Json("float32")},
        {"mtp_num_hidden_layers", Json(c.mtp_layers)},
        {"dtype", Json("bfloat16")},
    };
    if (moe) {
        text.push_back({"num_experts", Json(c.experts)});
        text.push_back({"num_experts_per_tok", Json(c.experts_per_token)});
        text.push_back({"moe_intermediate_size", Json(c.expert_width)});
        text.push_back({"shared_expert_intermediate_size", Json(c.shared_expert_width)});
    } else {
        text.push_back({"intermediate_size", Json(c.ffn_width)});
    }
    const char* architecture =
        moe ? "Qwen3_5MoeForConditionalGeneration" : "Qwen3_5ForConditionalGeneration";
    JsonArray architectures;
    architectures.emplace_back(architecture);
    return Json::object({
        {"architectures", Json(std::move(architectures))},
        {"model_type", Json(moe ? "qwen3_5_moe" : "qwen3_5")},
        {"tie_word_embeddings", Json(c.tied.value_or(false))},
        {"text_config", Json::object(std::move(text))},
    });
}

Result<Config> load_config(const std::string& folder) {
    const std::string path = folder + "/config.json";
    LR_TRY_ASSIGN(const std::string text, read_text_file(path));
    LR_TRY_ASSIGN(const Json root, parse_json(text, path));
    return parse_config(root, path);
}

} // namespace lr::model
