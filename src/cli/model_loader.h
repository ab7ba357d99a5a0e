// SPDX-License-Identifier: Apache-2.0
//
// cli/model_loader.h: a model folder with all that a command needs of it: weights, tokenizer, chat
// template, engine.
#pragma once

#include "cli/engine_flags.h"
#include "core/json.h"
#include "model/open.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

#include <memory>
#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace lr::cli {

struct ModelFlags {
    std::string folder, chat_template, template_kwargs;
    std::int64_t context = 0; // 0: the command's choice
    EngineFlags engine;
};

// MODEL, --context and the engine's flags. `flags` must live until the command
// line is parsed.
void add_model_flags(CLI::App& command, ModelFlags& flags);
// --chat-template and --template-kwargs.
void add_template_flags(CLI::App& command, ModelFlags& flags);
// The object that --template-kwargs says, where it was given.
Result<std::optional<Json>> template_kwargs(const ModelFlags& flags);

class LoadedModel {
  public:
    // Files mapped, weights found, tokenizer read where there is one; warnings are logged.
    static Result<std::unique_ptr<LoadedModel>> load(const ModelFlags& flags);

    // kNotFound, with what to do, where the folder has no tokenizer or no chat template.
    Status need_tokenizer() const;
    Status need_chat();

    // Makes the engine: `sequences` at a time, each with the context of the flags, or of `context`
    // (at most what the model was made for).
    Status start(std::int64_t context, std::int64_t sequences);

    // Ids below can be drawn: the tokenizer's, of the vocabulary.
    std::int64_t drawable() const;
    double load_seconds() const { return load_seconds_; }

    const ModelFlags& flags;
    model::OpenModel opened;
    std::optional<text::Tokenizer> tokenizer;
    std::optional<text::ChatTemplate> chat;
    std::unique_ptr<engine::Engine> engine;

  private:
    explicit LoadedModel(const ModelFlags& flags) : flags(flags) {}
    double load_seconds_ = 0;
};

} // namespace lr::cli
