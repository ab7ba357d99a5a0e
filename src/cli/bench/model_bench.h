// SPDX-License-Identifier: Apache-2.0
//
// cli/bench/model_bench.h: what measuring decode steps and measuring prefills have in common: a
// model on synthetic ids, its engine with a clock on the nodes, and the floors of the machine.
#pragma once

#include "cli/bench/commands.h"
#include "cli/bench/node_table.h"
#include "engine/engine.h"
#include "model/open.h"

#include <memory>
#include <optional>

namespace lr::cli {

struct ModelBenchFlags {
    BenchFlags bench;
    std::string model;
    NodeTableOptions table;
};

// MODEL, --threads, --json, --sort, --top, --each. `flags` must live until the command line is
// parsed.
void add_model_bench_flags(CLI::App& command, ModelBenchFlags& flags);

class ModelBench {
  public:
    // An engine for `sequences` of `context` tokens each. Measures the floors.
    static Result<std::unique_ptr<ModelBench>> load(const ModelBenchFlags& flags,
                                                    std::int64_t context, std::int64_t sequences);

    // A token as random as another: of a sequence's number and a position.
    std::int32_t token(std::int64_t sequence, std::int64_t position) const;
    // Appends tokens to a sequence in pieces of a prefill step, each of which draws a token; what
    // each step took is appended to `seconds`.
    Status prefill(engine::SequenceId id, std::int64_t sequence, std::int64_t tokens,
                   std::vector<double>& seconds);
    std::int64_t piece_tokens() const { return engine->options().prefill_rows; }

    // A step as its live rows make it (the engine's has those of its bucket): what it costs.
    // `visible` is what a row sees of its sequence, on average.
    Result<graph::Step> live_step(graph::Phase phase, std::int64_t rows, std::int64_t sequences,
                                  std::int64_t visible) const;

    // The floors again, when everything has been measured: the better of both times counts.
    void measure_floors();

    // The lines of text above a table, and the members of JSON that hold the same.
    void print_head() const;
    std::vector<JsonMember> head_json() const;

    const ModelBenchFlags& flags;
    const MachineFacts facts = machine_facts();
    Floors floors;
    NodeClock clock;
    model::OpenModel opened;
    std::unique_ptr<engine::Engine> engine;

  private:
    explicit ModelBench(const ModelBenchFlags& flags_in) : flags(flags_in) {}

    std::optional<FloorMeter> meter_;
};

// What all nodes of a step cost.
std::vector<ops::Cost> node_costs(const graph::Step& step);
double total_floor(const std::vector<NodeRow>& rows);

} // namespace lr::cli
