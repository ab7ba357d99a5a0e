// SPDX-License-Identifier: Apache-2.0
//
// liverow synth: a checkpoint of any size with synthetic weights.
#include "model/synth.h"

#include "cli/commands.h"
#include "core/buffer.h"
#include "core/log.h"
#include "core/text_file.h"
#include "model/presets.h"

#include <CLI/CLI.hpp>

#include <memory>

namespace lr::cli {
namespace {

struct Options {
    std::string out, preset, config, format = "bf16";
    std::int64_t layers = 0;
    bool no_mtp = false;
    model::SynthOptions synth;
    int threads = 0;
};

Result<model::Config> config_of(const Options& options) {
    if (!options.preset.empty())
        return model::preset(options.preset);
    LR_TRY_ASSIGN(const std::string text, read_text_file(options.config));
    LR_TRY_ASSIGN(const Json root, parse_json(text, options.config));
    return model::parse_config(root, options.config);
}

Status synth(Options options) {
    LR_TRY_ASSIGN(model::Config config, config_of(options));
    if (options.layers > 0)
        config = model::with_layers(config, options.layers);
    if (options.no_mtp)
        config.mtp_layers = 0;
    const auto format = numerics::weight_format_from_name(options.format);
    options.synth.format = format.value_or(model::WeightFormat::kPlain);
    ThreadPool pool(options.threads);
    LR_TRY_ASSIGN(const model::SynthReport report,
                  model::synth_checkpoint(options.out, config, options.synth, pool));
    log_info("{}: {} tensors, {} in {} file{}", options.out, report.tensors,
             format_bytes(report.bytes), report.files, report.files == 1 ? "" : "s");
    return {};
}

} // namespace

void add_synth(CLI::App& app, Action& action) {
    auto options = std::make_shared<Options>();
    CLI::App* command = app.add_subcommand("synth", "Write a checkpoint with synthetic weights");
    command->add_option("OUT", options->out, "Folder to write")->required();
    std::string names;
    for (std::string_view name : model::preset_names())
        names += (names.empty() ? "" : ", ") + std::string(name);
    auto* group = command->add_option_group("model", "Which dimensions");
    group->add_option("--preset", options->preset, "A released size: " + names);
    group->add_option("--config", options->config, "A config.json");
    group->require_option(1);
    command->add_option("--layers", options->layers, "Keep this many layers; 0: all")
        ->check(CLI::Range(0, 4096))
        ->capture_default_str();
    command->add_option("--format", options->format, "Format of projections and experts")
        ->check(CLI::IsMember({"bf16", "fp8-block"}))
        ->capture_default_str();
    command->add_option("--seed", options->synth.seed, "Seed of the weights")
        ->capture_default_str();
    command->add_flag("--no-mtp", options->no_mtp, "Leave the MTP layer out");
    command->add_flag("--split-experts", options->synth.split_experts,
                      "Store BF16 experts one by one instead of in stacks");
    command->add_flag("--bf16-vectors", options->synth.bf16_vectors,
                      "Store A_log and linear_attn.norm in BF16 instead of F32");
    command
        ->add_option("--shard-bytes", options->synth.max_shard_bytes,
                     "Bytes of a weight file before the next is begun")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    command->add_flag("--overwrite", options->synth.overwrite,
                      "Remove config.json, index and every model*.safetensors of OUT first");
    command->add_option("--plan", options->synth.plan_file,
                        "Write every tensor's name, shape and distribution to this JSON file");
    command->add_option("--threads", options->threads, "Threads; 0: one for each processor")
        ->check(CLI::Range(0, 4096))
        ->capture_default_str();
    command->footer("Example: liverow synth small --preset 0.8B --layers 4 --format fp8-block");
    command->callback([&action, options] { action = [options] { return synth(*options); }; });
}

} // namespace lr::cli
