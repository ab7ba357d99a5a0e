// SPDX-License-Identifier: Apache-2.0
#include "cli/tools/graph_flags.h"

#include "checkpoint/atomic_file.h"
#include "cli/bench/machine.h"
#include "cli/usage.h"
#include "core/log.h"
#include "core/text_file.h"
#include "graph/verify_plan.h"
#include "model/open.h"
#include "model/presets.h"

#include <CLI/CLI.hpp>
#include <fmt/ranges.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

namespace lr::cli {
namespace {

constexpr const char *kStepFlags = "Step", *kModelFlags = "Model";
constexpr std::int64_t kMost = std::int64_t{1} << 24;      // rows, tokens of context
constexpr std::int64_t kMostPairs = std::int64_t{1} << 40; // their FLOPs still count in 63 bits

struct Named {
    model::Model model;
    std::string name;
};

Result<Named> named_model(const GraphFlags& flags) {
    if (!flags.model.empty()) {
        LR_TRY_ASSIGN(model::OpenModel opened, model::open_model(flags.model));
        return Named{std::move(opened.resolved.model), flags.model};
    }
    LR_TRY_ASSIGN(const model::Config config, model::preset(flags.preset));
    const std::string format = flags.format.empty() ? "nvfp4-mixed" : flags.format;
    LR_TRY_ASSIGN(const model::FormatPolicy policy, model::format_policy(format));
    return Named{model::Model::declare(config, policy), fmt::format("{} {}", flags.preset, format)};
}

Status check_choice(const GraphFlags& flags) {
    if (flags.model.empty() == flags.preset.empty())
        return fail(Code::kInvalidArgument, "graph: expected a MODEL folder or --preset, got {}",
                    flags.model.empty() ? "neither" : "both");
    if (flags.tokens > 0 && flags.path.starts_with("decode"))
        return fail(Code::kInvalidArgument,
                    "--tokens: rows of a prefill step; a decode step has --batch of them");
    if (!flags.model.empty() && !flags.format.empty())
        return fail(Code::kInvalidArgument,
                    "--format: a MODEL has the formats of its files; expected --preset with it");
    return {};
}

graph::StepShape shape_of(const GraphFlags& flags, graph::Phase phase) {
    const bool decode = phase == graph::Phase::kDecode;
    graph::StepShape shape{.phase = phase,
                           .rows = flags.batch,
                           .sequences = flags.batch,
                           .logit_rows = flags.batch,
                           .context = flags.context,
                           .slots = flags.batch};
    if (!decode)
        shape.rows = flags.tokens > 0 ? flags.tokens : flags.batch * flags.context;
    shape.kv_pages = shape.sequences * shape.pages_per_sequence();
    return shape;
}

// This machine, measured now; there is no link but memory between ranks that are threads.
Result<graph::Machine> measured_cpu() {
    log_info("machine cpu: measuring memory and arithmetic for some seconds");
    LR_TRY_ASSIGN(const FloorMeter meter, FloorMeter::make());
    ThreadPool pool;
    Floors floors = meter.measure(pool, true);
    floors.raise(meter.measure(pool, true));
    const std::string source = fmt::format("measured now, {} threads", floors.threads);
    const graph::Figure flops{floors.flops / 1e12, source + ", f32 units"};
    return graph::Machine{.name = "cpu",
                          .device = machine_facts().processor,
                          .read = {floors.read / 1e9, source},
                          .copy = {floors.copy / 1e9, source},
                          .link = {floors.copy / 1e9, "ranks are threads: a copy, " + source},
                          .bf16 = flops,
                          .fp8 = flops,
                          .fp4 = flops,
                          .f32 = flops,
                          .launch = {0, "a call"}};
}

std::string list(const std::vector<std::string_view>& names) {
    return fmt::format("{}", fmt::join(names, ", "));
}

} // namespace

void add_graph_flags(CLI::App& command, GraphFlags& flags) {
    {
        const FlagGroup group(command, kModelFlags);
        command.add_option("MODEL", flags.model, "Model folder, or --preset");
        command.add_option("--preset", flags.preset,
                           "A released size: " + list(model::preset_names()));
        command.add_option("--format", flags.format,
                           "Weights of a preset, nvfp4-mixed unless said: " +
                               list(model::format_policy_names()));
        command
            .add_option("--activations", flags.activations,
                        "As in `run`: quant as the traced kernels do, auto as `run` does unless "
                        "told otherwise (NVFP4: W4A16), 16 never")
            ->check(CLI::IsMember({"auto", "16", "quant"}))
            ->capture_default_str();
    }
    const FlagGroup group(command, kStepFlags);
    command.add_option("--path", flags.path, list(report::path_names()))->capture_default_str();
    command
        .add_option("-n,--batch", flags.batch, "Sequences of the step; decode has a row for each")
        ->check(CLI::Range(std::int64_t{1}, kMost))
        ->capture_default_str();
    command
        .add_option("--context", flags.context,
                    "Tokens that each sequence's cache holds, all read by each row")
        ->check(CLI::Range(std::int64_t{1}, kMost))
        ->capture_default_str();
    command
        .add_option("--tokens", flags.tokens,
                    "Rows of a prefill step, all sequences together; 0: batch * context")
        ->check(CLI::Range(std::int64_t{0}, kMost))
        ->capture_default_str();
    command.add_option("--tp", flags.tp, "Ranks that divide heads and widths")
        ->check(CLI::Range(1, static_cast<int>(kMaxRanks)))
        ->capture_default_str();
    command.add_option("--ep", flags.ep, "Ranks that divide the experts")
        ->check(CLI::Range(1, static_cast<int>(kMaxRanks)))
        ->capture_default_str();
    command
        .add_option("--machine", flags.machine,
                    "Whose floors: h200, b300, cpu (this one, measured now) or a JSON file")
        ->capture_default_str();
    command.add_option("-o,--out", flags.out, "File to write instead of standard output");
}

Result<BuiltGraph> build_graph(const GraphFlags& flags) {
    LR_TRY(check_choice(flags));
    LR_TRY_ASSIGN(const report::PathChoice choice, report::path_choice(flags.path));
    LR_TRY_ASSIGN(Named named, named_model(flags));
    const graph::StepShape shape = shape_of(flags, choice.phase);
    if (shape.rows > kMostPairs / shape.context && shape.rows <= kMost)
        return fail(Code::kInvalidArgument,
                    "step: expected at most 2^40 pairs of a row and a token of context, got {} "
                    "rows of context {}",
                    shape.rows, shape.context);
    if (shape.rows > kMost)
        return fail(Code::kInvalidArgument,
                    "prefill: batch {} * context {}: expected at most {} rows; --tokens says how "
                    "many",
                    flags.batch, flags.context, kMost);
    const graph::StepOptions options{.w4a4 = flags.activations == "quant",
                                     .a16 = flags.activations == "16"};
    auto step = graph::build_step(named.model, {.tp = flags.tp, .ep = flags.ep}, shape, options);
    if (!step)
        return fail(step.error().with_context(named.name));
    LR_TRY_ASSIGN(graph::Machine machine, find_machine(flags.machine));
    return BuiltGraph{.model = std::move(named.name),
                      .choice = choice,
                      .machine = std::move(machine),
                      .step = std::move(*step)};
}

Result<graph::Machine> find_machine(const std::string& name) {
    if (name == "cpu")
        return measured_cpu();
    if (auto known = graph::machine(name))
        return known;
    if (name.find('/') == std::string::npos && !name.ends_with(".json"))
        return fail(Code::kInvalidArgument,
                    "machine: expected {}, cpu or a file (with a / or .json in its name), got "
                    "\"{}\"",
                    fmt::join(graph::machine_names(), ", "), name);
    LR_TRY_ASSIGN(const std::string text, read_text_file(name));
    return graph::parse_machine(text, name);
}

Result<graph::Plan> plan_of(const graph::Step& step, std::string_view names) {
    graph::Plan plan = graph::reference_plan(step);
    while (names != "reference" && !names.empty()) {
        const std::size_t comma = std::min(names.find(','), names.size());
        LR_TRY_ASSIGN(plan, graph::apply_rewrite(step, plan, names.substr(0, comma)));
        names.remove_prefix(std::min(comma + 1, names.size()));
    }
    const graph::MemoryPlan memory = graph::plan_memory(step, plan);
    LR_TRY(graph::verify_plan(step, plan, &memory));
    return plan;
}

Status write_out(const GraphFlags& flags, std::string_view text) {
    if (flags.out.empty()) {
        std::fwrite(text.data(), 1, text.size(), stdout);
        return {};
    }
    // What is no file (/dev/stdout, a pipe) is written to; a rename would put a file in its place.
    std::error_code error;
    const std::filesystem::file_status there = std::filesystem::status(flags.out, error);
    if (!std::filesystem::exists(there) || std::filesystem::is_regular_file(there))
        return checkpoint::write_file(flags.out, text, false);
    std::ofstream file(flags.out, std::ios::binary);
    file.write(text.data(), static_cast<std::streamsize>(text.size()));
    file.close();
    if (!file)
        return fail(Code::kInternal, "{}: cannot be written", flags.out);
    return {};
}

} // namespace lr::cli
