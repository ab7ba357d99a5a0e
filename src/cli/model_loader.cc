// SPDX-License-Identifier: Apache-2.0
#include "cli/model_loader.h"

#include "cli/usage.h"
#include "core/buffer.h"
#include "core/clock.h"
#include "core/log.h"
#include "cuda/device.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>

namespace lr::cli {
namespace {

// How products with quantised weights are made; nothing where all is plain.
std::string arithmetic(const model::Model& model, const engine::EngineOptions& options) {
    const bool plain = options.a16 || options.precision == ops::Precision::kF32;
    bool fp8 = false, fp4 = false, calibrated = false;
    for (const model::Entry& entry : model.entries()) {
        if (entry.mtp || entry.format == model::WeightFormat::kPlain)
            continue;
        const bool nvfp4 = entry.format == model::WeightFormat::kNvfp4;
        (nvfp4 ? fp4 : fp8) = true;
        calibrated = calibrated || (nvfp4 && entry.input_scale > 0);
    }
    std::string text = !fp8 ? "" : plain ? "FP8 weights, plain activations (W8A16)" : "FP8: W8A8";
    if (!fp4)
        return text;
    const bool w4a4 = options.w4a4 && calibrated && !plain;
    return fmt::format("{}{}NVFP4: {}", text, text.empty() ? "" : "; ",
                       w4a4         ? "W4A4"
                       : calibrated ? "W4A16 (--activations quant for W4A4)"
                                    : "W4A16");
}

} // namespace

void add_model_flags(CLI::App& command, ModelFlags& flags) {
    command
        .add_option("MODEL", flags.folder,
                    "Model folder: config.json, *.safetensors, tokenizer.json")
        ->required();
    const FlagGroup group(command, kEngineFlags);
    command
        .add_option("--context", flags.context,
                    "Tokens to make room for; 0: as needed, in a chat 8192 or what the model has")
        ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 31))
        ->capture_default_str();
    add_engine_flags(command, flags.engine);
}

void add_template_flags(CLI::App& command, ModelFlags& flags) {
    command
        .add_option("--chat-template", flags.chat_template,
                    "A Jinja file in place of the model's own chat template")
        ->type_name("FILE");
    command
        .add_option("--template-kwargs", flags.template_kwargs,
                    "More variables for the template: {\"NAME\": VALUE, ...}")
        ->type_name("JSON");
}

Result<std::optional<Json>> template_kwargs(const ModelFlags& flags) {
    if (flags.template_kwargs.empty())
        return std::optional<Json>();
    LR_TRY_ASSIGN(Json json, parse_json(flags.template_kwargs, "--template-kwargs",
                                        {.error_code = Code::kInvalidArgument}));
    if (!json.is_object())
        return fail(Code::kInvalidArgument, "--template-kwargs: expected an object, got {}",
                    json_excerpt(json));
    return std::optional<Json>(std::move(json));
}

Result<std::unique_ptr<LoadedModel>> LoadedModel::load(const ModelFlags& flags) {
    const double start = monotonic_seconds();
    std::unique_ptr<LoadedModel> loaded(new LoadedModel(flags));
    LR_TRY_ASSIGN(loaded->opened, model::open_model(flags.folder));
    for (const std::string& text : loaded->opened.disagreements)
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
    if (options.place.is_cuda()) // a GPU wants its prompts in large pieces
        options.prefill_rows =
            std::clamp<std::int64_t>((options.context + 63) / 64 * 64, options.prefill_rows, 8192);
    options.vocab_limit = tokenizer ? tokenizer->vocab_size() : 0;
    LR_TRY_ASSIGN(engine, engine::Engine::load(opened, options));
    load_seconds_ += monotonic_seconds() - start;
    if (const std::string text = arithmetic(opened.model(), options); !text.empty())
        log_info("{}; {} of scales checked in {:.2f} s", text,
                 format_bytes(engine->report().scale_bytes), engine->report().scale_seconds);
    return {};
}

std::int64_t LoadedModel::drawable() const {
    const std::int64_t vocabulary = opened.config().vocab_size;
    return tokenizer ? std::min<std::int64_t>(tokenizer->vocab_size(), vocabulary) : vocabulary;
}

} // namespace lr::cli
