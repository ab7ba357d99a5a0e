// SPDX-License-Identifier: Apache-2.0
#include "core/text_file.h"
#include "model/config.h"

#include <algorithm>
#include <filesystem>

namespace lr::model {
namespace {

constexpr std::int64_t kMaxId = std::int64_t{1} << 30;

// eos_token_id is one id, a list of ids, or null.
Status read_eos(const JsonCursor& cursor, std::vector<std::int32_t>& ids) {
    if (!cursor.has("eos_token_id"))
        return {};
    const JsonCursor eos = cursor.member("eos_token_id");
    std::vector<JsonCursor> entries = {eos};
    if (eos.value().is_array()) {
        LR_TRY_ASSIGN(entries, eos.read_array());
    }
    for (const JsonCursor& entry : entries) {
        LR_TRY_ASSIGN(const std::int64_t id, entry.read_int(0, kMaxId));
        const auto value = static_cast<std::int32_t>(id);
        if (std::find(ids.begin(), ids.end(), value) == ids.end())
            ids.push_back(value);
    }
    return {};
}

Status read_number(const JsonCursor& cursor, const char* name, double low, double high,
                   std::optional<double>& value) {
    if (cursor.has(name)) {
        LR_TRY_ASSIGN(value, cursor.required_double(name, low, high));
    }
    return {};
}

Result<Json> read_json_file(const std::string& path) {
    LR_TRY_ASSIGN(const std::string text, read_text_file(path));
    return parse_json(text, path);
}

} // namespace

Result<GenerationConfig> load_generation_config(const std::string& folder) {
    GenerationConfig generation;
    const std::string path = folder + "/generation_config.json";
    if (std::filesystem::exists(path)) {
        LR_TRY_ASSIGN(const Json root, read_json_file(path));
        const JsonCursor cursor(path, root);
        LR_TRY(cursor.expect_object());
        LR_TRY(read_eos(cursor, generation.eos_ids));
        LR_TRY(read_number(cursor, "temperature", 0.0, 1e3, generation.temperature));
        LR_TRY(read_number(cursor, "top_p", 0.0, 1.0, generation.top_p));
        LR_TRY(read_number(cursor, "min_p", 0.0, 1.0, generation.min_p));
        LR_TRY(read_number(cursor, "repetition_penalty", 0.0, 1e3, generation.repetition_penalty));
        if (cursor.has("top_k")) {
            LR_TRY_ASSIGN(generation.top_k, cursor.required_int("top_k", 0, kMaxId));
        }
    }
    if (!generation.eos_ids.empty())
        return generation;
    const std::string config_path = folder + "/config.json";
    LR_TRY_ASSIGN(const Json root, read_json_file(config_path));
    const JsonCursor cursor(config_path, root);
    LR_TRY(cursor.expect_object());
    LR_TRY(read_eos(cursor, generation.eos_ids));
    LR_TRY_ASSIGN(const auto text, cursor.optional_object("text_config"));
    if (text) {
        LR_TRY(read_eos(*text, generation.eos_ids));
    }
    return generation;
}

} // namespace lr::model
