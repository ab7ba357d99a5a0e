// SPDX-License-Identifier: Apache-2.0
#include "model/open.h"

#include "core/text_file.h"
#include "model/quant_check.h"

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

// config.json's root, and hf_quant_config.json beside it, which ModelOpt writes.
Result<std::optional<checkpoint::QuantizationConfig>>
read_declared(const std::string& folder, const std::string& config_path, const Json& root) {
    const std::string path = folder + "/hf_quant_config.json";
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored))
        return checkpoint::read_quantization_config(JsonCursor(config_path, root));
    LR_TRY_ASSIGN(const std::string text, read_text_file(path));
    LR_TRY_ASSIGN(const Json modelopt, parse_json(text, path));
    return checkpoint::read_quantization_config(JsonCursor(config_path, root),
                                                JsonCursor(path, modelopt));
}

} // namespace

Result<OpenModel> open_model(const std::string& folder) {
    LR_TRY(check_folder(folder));
    const std::string config_path = folder + "/config.json";
    LR_TRY_ASSIGN(const std::string text, read_text_file(config_path));
    LR_TRY_ASSIGN(const Json root, parse_json(text, config_path));
    LR_TRY_ASSIGN(const Config config, parse_config(root, config_path));
    LR_TRY_ASSIGN(auto declared, read_declared(folder, config_path, root));
    LR_TRY_ASSIGN(GenerationConfig generation, load_generation_config(folder));
    for (std::int32_t id : generation.eos_ids)
        if (id >= config.vocab_size)
            return fail(Code::kInvalidFile,
                        "{}: eos_token_id: expected ids below the vocabulary of {}, got {}", folder,
                        config.vocab_size, id);
    LR_TRY_ASSIGN(checkpoint::Checkpoint opened, checkpoint::Checkpoint::open(folder));
    auto owned = std::make_unique<checkpoint::Checkpoint>(std::move(opened));
    Result<ResolvedModel> resolved = resolve(config, *owned);
    if (!resolved) {
        if (declared)
            LR_TRY(refuse_declared(Model::declare(config, {}), *declared, resolved.error()));
        return fail(resolved.error());
    }
    LR_TRY(owned->still_intact());
    std::vector<std::string> disagreements = quantization_disagreements(*resolved, declared);
    return OpenModel{folder,
                     std::move(generation),
                     std::move(owned),
                     std::move(*resolved),
                     std::move(declared),
                     std::move(disagreements)};
}

} // namespace lr::model
