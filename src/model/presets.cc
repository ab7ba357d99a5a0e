// SPDX-License-Identifier: Apache-2.0
#include "model/presets.h"

#include <array>

namespace lr::model {
namespace {

struct Row {
    std::string_view name;
    std::int64_t hidden, layers, q_heads, kv_heads, v_heads;
    std::int64_t experts, per_token; // 0 for dense
    std::int64_t width;              // expert and shared-expert width, or the dense FFN's
    bool tied;
};

// hidden, layers, Hq, Hkv, Hv, E, K, I or F, tied. Common to all: vocabulary 248320, head_dim 256,
// 16 key heads, GDN widths 128, full attention every 4th layer, rotary 64, theta 1e7.
constexpr std::array kRows = {
    Row{"0.8B", 1024, 24, 8, 2, 16, 0, 0, 3584, true},
    Row{"2B", 2048, 24, 8, 2, 16, 0, 0, 6144, true},
    Row{"4B", 2560, 32, 16, 4, 32, 0, 0, 9216, true},
    Row{"9B", 4096, 32, 16, 4, 32, 0, 0, 12288, false},
    Row{"27B", 5120, 64, 24, 4, 48, 0, 0, 17408, false},
    Row{"35B-A3B", 2048, 40, 16, 2, 32, 256, 8, 512, false},
    Row{"122B-A10B", 3072, 48, 32, 2, 64, 256, 8, 1024, false},
    Row{"397B-A17B", 4096, 60, 32, 2, 64, 512, 10, 1024, false},
    Row{"3.6-27B", 5120, 64, 24, 4, 48, 0, 0, 17408, false},
    Row{"3.6-35B-A3B", 2048, 40, 16, 2, 32, 256, 8, 512, false},
    Row{"3.8-27B", 5120, 64, 24, 4, 48, 0, 0, 17408, false},
    Row{"3.8-2.4T-A95B", 8192, 92, 64, 4, 128, 512, 10, 2048, false},
};

Config from_row(const Row& row) {
    Config c;
    c.model_type = row.experts ? "qwen3_5_moe_text" : "qwen3_5_text";
    c.vocab_size = 248320;
    c.hidden = row.hidden;
    c.layers = interval_layers(row.layers, 4);
    c.max_positions = 262144;
    c.tied = row.tied;
    c.q_heads = row.q_heads;
    c.kv_heads = row.kv_heads;
    c.head_dim = 256;
    c.rotary_dim = 64;
    c.k_heads = 16;
    c.v_heads = row.v_heads;
    c.k_dim = 128;
    c.v_dim = 128;
    c.mtp_layers = 1;
    if (row.experts) {
        c.experts = row.experts;
        c.experts_per_token = row.per_token;
        c.expert_width = row.width;
        c.shared_expert_width = row.width;
    } else {
        c.ffn_width = row.width;
    }
    return c;
}

} // namespace

std::vector<std::string_view> preset_names() {
    std::vector<std::string_view> names;
    for (const Row& row : kRows)
        names.push_back(row.name);
    return names;
}

Result<Config> preset(std::string_view name) {
    std::string known;
    for (const Row& row : kRows) {
        if (row.name == name)
            return from_row(row);
        known += fmt::format("{}{}", known.empty() ? "" : ", ", row.name);
    }
    return fail(Code::kInvalidArgument, "preset: expected one of {}, got \"{}\"", known, name);
}

} // namespace lr::model
