// SPDX-License-Identifier: Apache-2.0
//
// liverow verify: any plan on any device beside the reference.
#include "cli/tools/commands.h"
#include "cli/tools/verify_runs.h"
#include "cli/usage.h"
#include "graph/plan.h"

#include <CLI/CLI.hpp>

#include <memory>

namespace lr::cli {
namespace {

std::string rewrite_names() {
    std::string names;
    for (const graph::Rewrite& rewrite : graph::all_rewrites())
        names += fmt::format(", {}", rewrite.name);
    return names;
}

void add_what(CLI::App& command, VerifyOptions& options) {
    const FlagGroup group(command, "What is verified");
    command.add_option("MODEL", options.model, "Model folder: config.json, *.safetensors");
    command.add_option("--preset", options.preset,
                       "Instead of MODEL: a released size with synthetic weights");
    command.add_option("--layers", options.layers, "With --preset: keep this many layers")
        ->check(CLI::Range(1, 4096))
        ->capture_default_str();
    command.add_option("--format", options.format, "With --preset: format of the weights")
        ->check(CLI::IsMember({"bf16", "fp8-block"}))
        ->capture_default_str();
    command
        .add_option("--path", options.path,
                    "Launches of one path: prefill-gdn, prefill-attention, decode-gdn, "
                    "decode-attention, prologue, epilogue; or all")
        ->check(CLI::IsMember({"all", "prefill-gdn", "prefill-attention", "decode-gdn",
                               "decode-attention", "prologue", "epilogue"}))
        ->capture_default_str();
    command.add_option("--nodes", options.nodes, "Nodes of these numbers: 7 or 6-9");
    command.add_option("--layer", options.layer, "Launches of one layer; -1: all")
        ->check(CLI::Range(-1, 4096))
        ->capture_default_str();
    command
        .add_option("--plan", options.plan,
                    "reference, all (one after the other), or rewrites separated by commas: " +
                        rewrite_names().substr(2))
        ->capture_default_str();
}

void add_how(CLI::App& command, VerifyOptions& options) {
    const FlagGroup group(command, "How");
    command.add_option("--device", options.device, "Device under test")
        ->check(CLI::IsMember({"cpu", "cuda"}))
        ->capture_default_str();
    auto* local = command.add_flag("--launch-local", options.launch_local,
                                   "Every launch on the reference's inputs, within counted bounds "
                                   "(what is done without a flag)");
    command
        .add_flag("--free-run", options.free_run,
                  "Whole steps on the device's own results, routed alike: KL and likeliest token")
        ->excludes(local);
    command.add_option("--inject", options.inject,
                       "Spoil what this node wrote and see that it is noticed: L0.8, or L0.8:nan "
                       "for one fault of element, row, swap, nan, stale, id, pad");
    command.add_option("--rows", options.rows, "Sequences decoded together")
        ->check(CLI::Range(1, 64))
        ->capture_default_str();
    command
        .add_option("--prompt-tokens", options.prompt_tokens,
                    "Tokens of the longest prompt; prefilled in two pieces")
        ->check(CLI::Range(2, 512))
        ->capture_default_str();
    command.add_option("--steps", options.steps, "Decode steps after the prompts")
        ->check(CLI::Range(1, 64))
        ->capture_default_str();
}

void add_engine(CLI::App& command, VerifyOptions& options) {
    const FlagGroup group(command, kEngineFlags);
    command.add_option("--precision", options.precision, "bf16: the model's roundings; f32: none")
        ->check(CLI::IsMember({"bf16", "f32"}))
        ->capture_default_str();
    command.add_option("--numerics", options.numerics, "Residual that norms read")
        ->check(CLI::IsMember({"hf", "seed"}))
        ->capture_default_str();
    command
        .add_option("--activations", options.activations,
                    "auto; 16: quantise none; quant: NVFP4 ones too, where the file has scales")
        ->check(CLI::IsMember({"auto", "16", "quant"}))
        ->capture_default_str();
    command.add_option("--threads", options.threads, "Threads; 0: one for each processor")
        ->check(CLI::Range(0, 4096))
        ->capture_default_str();
}

} // namespace

void add_verify(CLI::App& app, Action& action) {
    auto options = std::make_shared<VerifyOptions>();
    CLI::App* command = app.add_subcommand(
        "verify", "Hold a device's results against the reference, tensor by tensor");
    add_what(*command, *options);
    add_how(*command, *options);
    add_engine(*command, *options);
    command->footer("Example: liverow verify models/tiny --path decode-gdn --nodes 6-9 --plan 8+9\n"
                    "         liverow verify models/tiny --inject L0.7");
    command->callback(
        [&action, options] { action = [options] { return verify_model(*options); }; });
}

} // namespace lr::cli
