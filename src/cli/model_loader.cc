// SPDX-License-Identifier: Apache-2.0
#include "cli/model_loader.h"

#include "core/clock.h"
#include "core/log.h"
#include "cuda/device.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>

namespace lr::cli {

void add_model_flags(CLI::App& command, ModelFlags& flags) {
    command
        .add_option("MODEL", flags.folder,
                    "Model folder: config.json, *.safetensors, tokenizer.json")
        ->required();
    command.add_option("--context", flags.context, "Tokens to make room for; 0: as needed")
        ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 31))
        ->capture_default_str();
    command.add_option("--chat-template", flags.chat_template,
                       "A Jinja file in place of the model's own chat template");
    add_engine_flags(command, flags.engine);
}

Result<std::unique_ptr<LoadedModel>> LoadedModel::load(const ModelFlags& flags) {
    const double start = monotonic_seconds();
    std::unique_ptr<LoadedModel> loaded(new LoadedModel(flags));
    LR_TRY_ASSIGN(loaded->opened, model::open_model(flags.folder));
    for (const std::string& text : loaded->opened.resolved.disagreements)
        log_warning("{}", text);
    std::error_code ignored;
    if (std::filesystem::exists(flags.folder + "/tokenizer.json", ignored)) {
        LR_TRY_ASSIGN(loaded->tokenizer, text::Tokenizer::load(flags.folder));
    }
    loaded->load_seconds_ = monotonic_seconds() - start;
    return loaded;
}

Status LoadedModel::need_tokenizer() const {
    if (tokenizer)
        return {};
    return fail(Code::kNotFound,
                "{}/tokenizer.json: not found; give the prompt as token ids (run --ids)",
                flags.folder);
}

Status LoadedModel::need_chat() {
    LR_TRY(need_tokenizer());
    std::optional<std::filesystem::path> file;
    if (!flags.chat_template.empty())
        file = flags.chat_template;
    LR_TRY_ASSIGN(chat, text::ChatTemplate::load(flags.folder, file));
    return {};
}

Status LoadedModel::start(std::int64_t context, std::int64_t sequences) {
    const double start = monotonic_seconds();
    engine::EngineOptions options = flags.engine.options();
    const std::int64_t most = opened.config().max_positions;
    options.context = flags.context > 0 ? flags.context : std::min(context, most);
    options.sequences = sequences;
    options.vocab_limit = tokenizer ? tokenizer->vocab_size() : 0;
    LR_TRY_ASSIGN(engine, engine::Engine::load(opened, options));
    load_seconds_ += monotonic_seconds() - start;
    return {};
}

std::int64_t LoadedModel::drawable() const {
    const std::int64_t vocabulary = opened.config().vocab_size;
    return tokenizer ? std::min<std::int64_t>(tokenizer->vocab_size(), vocabulary) : vocabulary;
}

} // namespace lr::cli
