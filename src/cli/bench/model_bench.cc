// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/model_bench.h"

#include "core/log.h"
#include "numerics/counter_rng.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>

namespace lr::cli {
namespace {

constexpr std::uint64_t kSeed = 20;

std::int64_t pages_of(std::int64_t tokens) {
    return (tokens + ops::kKvPage - 1) / ops::kKvPage;
}

} // namespace

void add_model_bench_flags(CLI::App& command, ModelBenchFlags& flags) {
    command.add_option("MODEL", flags.model, "Model folder: config.json, *.safetensors")
        ->required();
    command.add_option("--sort", flags.table.sort, "Nodes by their time, or in order as they run")
        ->check(CLI::IsMember({"time", "order"}))
        ->capture_default_str();
    command.add_option("--top", flags.table.top, "Lines of the table; 0: all")
        ->check(CLI::Range(0, 1000000))
        ->capture_default_str();
    command.add_flag("--each", flags.table.each,
                     "Each layer's nodes apart instead of all layers of a kind together");
    add_bench_flags(command, flags.bench);
}

Result<std::unique_ptr<ModelBench>> ModelBench::load(const ModelBenchFlags& flags,
                                                     std::int64_t context, std::int64_t sequences) {
    std::unique_ptr<ModelBench> bench(new ModelBench(flags));
    LR_TRY_ASSIGN(bench->opened, model::open_model(flags.model));
    for (const std::string& text : bench->opened.disagreements)
        log_warning("{}", text);
    LR_TRY_ASSIGN(bench->engine,
                  engine::Engine::load(bench->opened, {.threads = flags.bench.threads,
                                                       .context = context,
                                                       .sequences = sequences,
                                                       .observer = &bench->clock}));
    LR_TRY_ASSIGN(bench->meter_, FloorMeter::make());
    bench->measure_floors();
    return bench;
}

void ModelBench::measure_floors() {
    ThreadPool pool(flags.bench.threads);
    const Floors measured = meter_->measure(pool);
    floors.threads = measured.threads;
    floors.raise(measured);
}

std::int32_t ModelBench::token(std::int64_t sequence, std::int64_t position) const {
    const std::uint64_t bits = numerics::counter_bits(kSeed, static_cast<std::uint64_t>(sequence),
                                                      static_cast<std::uint64_t>(position));
    return static_cast<std::int32_t>(
        numerics::below(bits, static_cast<std::uint64_t>(opened.config().vocab_size)));
}

Status ModelBench::prefill(engine::SequenceId id, std::int64_t sequence, std::int64_t tokens,
                           std::vector<double>& seconds) {
    for (std::int64_t first = 0; first < tokens; first += piece_tokens()) {
        engine::StepInput input{.phase = graph::Phase::kPrefill};
        engine::Piece& piece = input.pieces.emplace_back();
        piece.sequence = id;
        for (std::int64_t at = first; at < std::min(first + piece_tokens(), tokens); ++at)
            piece.tokens.push_back(token(sequence, at));
        LR_TRY_ASSIGN(const engine::Ticket ticket, engine->submit(std::move(input)));
        LR_TRY_ASSIGN(const engine::StepOutput output, engine->wait(ticket));
        seconds.push_back(output.seconds);
    }
    return {};
}

Result<graph::Step> ModelBench::live_step(graph::Phase phase, std::int64_t rows,
                                          std::int64_t sequences, std::int64_t visible) const {
    const graph::StepShape shape{.phase = phase,
                                 .rows = rows,
                                 .sequences = sequences,
                                 .logit_rows = sequences,
                                 .context = visible,
                                 .slots = sequences,
                                 .kv_pages = sequences * pages_of(visible)};
    return graph::build_step(opened.model(), {}, shape);
}

void ModelBench::print_head() const {
    print_machine(facts, floors);
    fmt::print("model       {}: {} layers, {} of weights\n", flags.model,
               opened.config().layer_count(), format_bytes(engine->report().weight_bytes));
}

std::vector<JsonMember> ModelBench::head_json() const {
    std::vector<JsonMember> members = machine_json(facts, floors);
    members.push_back({"model", Json(flags.model)});
    members.push_back({"layers", Json(opened.config().layer_count())});
    members.push_back({"model_bytes", Json(engine->report().weight_bytes)});
    return members;
}

std::vector<ops::Cost> node_costs(const graph::Step& step) {
    std::vector<ops::Cost> costs;
    for (const graph::Node& node : step.nodes)
        costs.push_back(node.cost);
    return costs;
}

double total_floor(const std::vector<NodeRow>& rows) {
    double total = 0;
    for (const NodeRow& row : rows)
        total += row.floor_seconds;
    return total;
}

} // namespace lr::cli
