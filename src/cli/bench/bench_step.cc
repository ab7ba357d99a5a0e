// SPDX-License-Identifier: Apache-2.0
//
// liverow bench step: decode steps of a model, node by node.
#include "cli/bench/model_bench.h"
#include "core/clock.h"
#include "core/log.h"

#include <CLI/CLI.hpp>

#include <cstdio>

namespace lr::cli {
namespace {

// Steps before the clock counts: pages of the files are mapped and threads are awake.
constexpr std::int64_t kWarmUp = 2;

struct Options {
    ModelBenchFlags flags;
    std::int64_t rows = 1, context = 128, steps = 32;
};

class StepBench {
  public:
    explicit StepBench(const Options& options) : options_(options) {}

    Status execute() {
        const std::int64_t reached = options_.context + kWarmUp + options_.steps;
        LR_TRY_ASSIGN(bench_, ModelBench::load(options_.flags, reached, options_.rows));
        LR_TRY(fill_contexts());
        std::vector<double> warm;
        LR_TRY(decode(options_.context, kWarmUp, warm));
        bench_->clock.clear();
        std::vector<double> seconds;
        const Stopwatch watch;
        const BusyMeter busy;
        LR_TRY(decode(options_.context + kWarmUp, options_.steps, seconds));
        wall_seconds_ = watch.seconds();
        busy_ = busy.share(bench_->engine->report().threads);
        live_experts_ = bench_->clock.live_experts();
        for (double value : seconds)
            seconds_.add(value);
        bench_->measure_floors();
        const std::int64_t visible = options_.context + kWarmUp + (options_.steps + 1) / 2;
        LR_TRY_ASSIGN(
            const graph::Step step,
            bench_->live_step(graph::Phase::kDecode, options_.rows, options_.rows, visible));
        total_ = step.total_cost();
        rows_ = node_rows(step, node_costs(step), bench_->clock.take(seconds), bench_->floors,
                          options_.flags.table);
        if (options_.flags.bench.json)
            print_figures_json();
        else
            print_table();
        return {};
    }

  private:
    Status fill_contexts() {
        Progress progress("filling contexts", options_.rows * options_.context, "tokens");
        std::vector<double> seconds;
        for (std::int64_t i = 0; i < options_.rows; ++i) {
            LR_TRY_ASSIGN(const engine::SequenceId id, bench_->engine->open_sequence());
            sequences_.push_back(id);
            LR_TRY(bench_->prefill(id, i, options_.context, seconds));
            progress.advance(options_.context);
        }
        return {};
    }

    // Steps on ids that are given, so that experts are chosen anew each time whatever the weights
    // draw. The next is submitted before the last has ended, as serving does.
    Status decode(std::int64_t first, std::int64_t steps, std::vector<double>& seconds) {
        Progress progress("decoding", steps, "steps");
        std::optional<engine::Ticket> ahead;
        for (std::int64_t step = 0; step <= steps; ++step) {
            std::optional<engine::Ticket> next;
            if (step < steps) {
                LR_TRY_ASSIGN(next, submit(first + step));
            }
            if (ahead) {
                LR_TRY_ASSIGN(const engine::StepOutput output, bench_->engine->wait(*ahead));
                seconds.push_back(output.seconds);
                progress.advance(1);
            }
            ahead = next;
        }
        return {};
    }

    Result<engine::Ticket> submit(std::int64_t position) {
        engine::StepInput input{.phase = graph::Phase::kDecode};
        for (std::int64_t i = 0; i < options_.rows; ++i)
            input.pieces.push_back({.sequence = sequences_[static_cast<std::size_t>(i)],
                                    .tokens = {bench_->token(i, position)}});
        return bench_->engine->submit(std::move(input));
    }

    double expected_experts() const {
        const model::Config& config = bench_->opened.config();
        return config.moe() ? ops::expected_live_experts(config.experts, config.experts_per_token,
                                                         options_.rows)
                            : 0;
    }
    double rate() const { return static_cast<double>(options_.rows) / seconds_.median(); }
    double wall_rate() const {
        return static_cast<double>(options_.rows * options_.steps) / wall_seconds_;
    }
    double weight_rate() const {
        return static_cast<double>(total_.weight_bytes) / seconds_.median();
    }

    void print_table() const {
        bench_->print_head();
        fmt::print("steps       {} of {} row{}, context {}; ", options_.steps, options_.rows,
                   options_.rows == 1 ? "" : "s", options_.context);
        print_node_rows(rows_, options_.flags.table);
        const Floors& floors = bench_->floors;
        fmt::print("\nstep        {:.2f} ms (+-{:.1f} %), {:.2f} tok/s; with everything between "
                   "steps {:.2f} tok/s\n",
                   1e3 * seconds_.median(), 100 * seconds_.spread(), rate(), wall_rate());
        fmt::print("weights     {:.1f} MB a step, {:.2f} GB/s: {:.1f} % of read bandwidth\n",
                   static_cast<double>(total_.weight_bytes) / 1e6, weight_rate() / 1e9,
                   100 * weight_rate() / floors.read);
        fmt::print("floor       {:.2f} ms for {:.1f} MB and {:.2f} GFLOP: {:.1f} %\n",
                   1e3 * total_floor(rows_), static_cast<double>(total_.bytes()) / 1e6,
                   static_cast<double>(total_.flops) / 1e9,
                   100 * total_floor(rows_) / seconds_.median());
        if (live_experts_ > 0)
            fmt::print("experts     {:.2f} live a layer; the bytes above count {:.2f}\n",
                       live_experts_, expected_experts());
        print_busy(busy_);
    }

    void print_figures_json() const {
        std::vector<JsonMember> members = bench_->head_json();
        const auto add = [&](const char* key, auto value) {
            members.push_back({key, Json(value)});
        };
        add("rows", options_.rows);
        add("context", options_.context);
        add("steps", options_.steps);
        add("step_ms", 1e3 * seconds_.median());
        add("step_spread", seconds_.spread());
        add("tokens_per_second", rate());
        add("wall_tokens_per_second", wall_rate());
        add("weight_bytes", total_.weight_bytes);
        add("weight_gbs", weight_rate() / 1e9);
        add("read_share", weight_rate() / bench_->floors.read);
        add("bytes", total_.bytes());
        add("flops", total_.flops);
        add("floor_ms", 1e3 * total_floor(rows_));
        add("waited_share", busy_);
        add("live_experts", live_experts_);
        add("counted_experts", expected_experts());
        members.push_back({"nodes", node_rows_json(rows_)});
        print_json(std::move(members));
    }

    const Options& options_;
    std::unique_ptr<ModelBench> bench_;
    std::vector<engine::SequenceId> sequences_;
    Samples seconds_;
    double wall_seconds_ = 0, busy_ = 0, live_experts_ = 0;
    ops::Cost total_;
    std::vector<NodeRow> rows_;
};

} // namespace

void add_bench_step(CLI::App& bench, Action& action) {
    auto options = std::make_shared<Options>();
    CLI::App* command = bench.add_subcommand("step", "Decode steps of a model, node by node");
    add_model_bench_flags(*command, options->flags);
    command->add_option("-n,--rows", options->rows, "Sequences decoded together")
        ->check(CLI::Range(1, 65536))
        ->capture_default_str();
    command->add_option("--context", options->context, "Tokens of each before the first step")
        ->check(CLI::Range(0, 1 << 30))
        ->capture_default_str();
    command->add_option("--steps", options->steps, "Steps measured")
        ->check(CLI::Range(1, 1000000))
        ->capture_default_str();
    command->callback(
        [&action, options] { action = [options] { return StepBench(*options).execute(); }; });
}

} // namespace lr::cli
