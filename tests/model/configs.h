// SPDX-License-Identifier: Apache-2.0
//
// tests/model/configs.h: small valid configs, and edits of them.
#pragma once

#include "core/json.h"
#include "model/config.h"

#include <string>
#include <string_view>
#include <vector>

namespace lr::model {

inline Config small_moe() {
    Config c;
    c.model_type = "qwen3_5_moe_text";
    c.vocab_size = 320;
    c.hidden = 128;
    c.layers = interval_layers(4, 4);
    c.max_positions = 1024;
    c.tied = false;
    c.q_heads = 4;
    c.kv_heads = 2;
    c.head_dim = 64;
    c.rotary_dim = 16;
    c.k_heads = 2;
    c.v_heads = 4;
    c.k_dim = 32;
    c.v_dim = 32;
    c.experts = 4;
    c.experts_per_token = 2;
    c.expert_width = 128;
    c.shared_expert_width = 128;
    return c;
}

inline Config small_dense() {
    Config c = small_moe();
    c.model_type = "qwen3_5_text";
    c.experts = c.experts_per_token = c.expert_width = c.shared_expert_width = 0;
    c.ffn_width = 160;
    return c;
}

// The value with object member `path` ("text_config.head_dim") set; nullptr removes it.
inline Json edited(const Json& value, std::string_view path, const Json* replacement) {
    const std::size_t dot = path.find('.');
    const std::string_view head = path.substr(0, dot);
    std::vector<JsonMember> members;
    bool found = false;
    for (const JsonMember& member : value.as_object().members()) {
        if (member.key != head) {
            members.push_back(member);
            continue;
        }
        found = true;
        if (dot != std::string_view::npos)
            members.push_back(
                {member.key, edited(member.value, path.substr(dot + 1), replacement)});
        else if (replacement)
            members.push_back({member.key, *replacement});
    }
    if (!found && replacement)
        members.push_back({std::string(head), *replacement});
    return Json::object(std::move(members));
}

} // namespace lr::model
