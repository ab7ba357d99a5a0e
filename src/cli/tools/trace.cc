// SPDX-License-Identifier: Apache-2.0
//
// liverow trace: a model's steps with real times; trace analyze: what such times mean.
#include "cli/engine_flags.h"
#include "cli/tools/commands.h"
#include "cli/tools/trace_runs.h"
#include "cli/usage.h"

#include <CLI/CLI.hpp>

#include <memory>

namespace lr::cli {
namespace {

void add_record(CLI::App& command, TraceOptions& options) {
    command.add_option("MODEL", options.model, "Model folder: config.json, *.safetensors");
    command.add_option("--out", options.out,
                       "Folder to write: trace.csv, trace.json (Perfetto, chrome://tracing), "
                       "timeline.html");
    command.add_option("-n,--rows", options.rows, "Sequences decoded together")
        ->check(CLI::Range(1, 65536))
        ->capture_default_str();
    command
        .add_option("--context", options.context, "Tokens of each prompt, prefilled in one step")
        ->check(CLI::Range(1, 1 << 20))
        ->capture_default_str();
    command.add_option("--steps", options.steps, "Decode steps after the prompts")
        ->check(CLI::Range(1, 100000))
        ->capture_default_str();
    add_device_flag(command, options.device);
    command.add_option("--threads", options.threads, "Threads; 0: one for each processor")
        ->check(CLI::Range(0, 4096))
        ->capture_default_str();
    command.add_flag("--overhead", options.overhead,
                     "Also decode the same steps with and without the recorder, by turns");
}

void add_analyze(CLI::App& trace, Action& action) {
    auto options = std::make_shared<AnalyzeOptions>();
    CLI::App* command = trace.add_subcommand(
        "analyze", "Critical path, slack, overlap and what fusions could save, of a trace");
    command->add_option("FILE", options->file, "trace.csv, or nsys's cuda_gpu_trace as CSV")
        ->required();
    CLI::Option* model =
        command->add_option("--model", options->model,
                            "Folder of the model that ran; its graph says who waits for whom");
    CLI::Option* preset =
        command->add_option("--preset", options->preset, "Instead: a released size")
            ->excludes(model);
    command
        ->add_option("--format", options->format,
                     "With --preset: formats of the weights, nvfp4-mixed unless said")
        ->needs(preset);
    command->add_option("--tp", options->tp, "Ranks that divided heads and widths")
        ->check(CLI::Range(1, 16))
        ->capture_default_str();
    command->add_option("--rules", options->rules,
                        "Which kernels are which nodes (for nsys): a file such as "
                        "tools/nsys/sglang.rules");
    command->add_option("--step", options->step, "Step to look at; -1: the median of those traced")
        ->capture_default_str();
    command->add_option("--layer", options->layer, "Only this layer's launches; -1: all")
        ->capture_default_str();
    command->add_option("--html", options->html, "Also write a timeline to this file");
    command->footer("Example: liverow trace analyze out/trace.csv --model models/tiny\n"
                    "         liverow trace analyze kernels.csv --rules tools/nsys/sglang.rules "
                    "--preset 397B-A17B --tp 2");
    command->callback(
        [&action, options] { action = [options] { return analyze_trace(*options); }; });
}

} // namespace

void add_trace(CLI::App& app, Action& action) {
    auto options = std::make_shared<TraceOptions>();
    CLI::App* command = app.add_subcommand("trace", "Record a model's steps, launch by launch");
    add_record(*command, *options);
    add_analyze(*command, action);
    command->require_subcommand(0, 1);
    command->footer("Example: liverow trace models/tiny --out out\n"
                    "         liverow trace analyze out/trace.csv --model models/tiny");
    command->callback([&action, command, options] {
        if (command->get_subcommands().empty())
            action = [options] { return record_trace(*options); };
    });
}

} // namespace lr::cli
