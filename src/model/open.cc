// SPDX-License-Identifier: Apache-2.0
#include "model/open.h"

#include "core/text_file.h"

#include <filesystem>

namespace lr::model {
namespace {

Status check_folder(const std::string& folder) {
    namespace fs = std::filesystem;
    std::error_code ignored;
    if (!fs::exists(folder, ignored))
        return fail(Code::kNotFound, "{}: no such model folder", folder);
    if (!fs::is_directory(folder, ignored))
        return fail(Code::kInvalidArgument,
                    "{}: expected a model folder with config.json and *.safetensors, got a file",
                    folder);
    return {};
}

} // namespace

Result<OpenModel> open_model(const std::string& folder) {
    LR_TRY(check_folder(folder));
    const std::string config_path = folder + "/config.json";
    LR_TRY_ASSIGN(const std::string text, read_text_file(config_path));
    LR_TRY_ASSIGN(const Json root, parse_json(text, config_path));
    LR_TRY_ASSIGN(const Config config, parse_config(root, config_path));
    LR_TRY_ASSIGN(const auto declared,
                  checkpoint::read_quantization_config(JsonCursor(config_path, root)));
    LR_TRY_ASSIGN(GenerationConfig generation, load_generation_config(folder));
    LR_TRY_ASSIGN(checkpoint::Checkpoint opened, checkpoint::Checkpoint::open(folder));
    auto owned = std::make_unique<checkpoint::Checkpoint>(std::move(opened));
    LR_TRY_ASSIGN(ResolvedModel resolved, resolve(config, *owned));
    resolved.disagreements =
        checkpoint::quantization_disagreements(declared, resolved.found_formats);
    return OpenModel{folder, std::move(generation), std::move(owned), std::move(resolved)};
}

} // namespace lr::model
