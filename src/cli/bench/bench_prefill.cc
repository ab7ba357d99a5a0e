// SPDX-License-Identifier: Apache-2.0
//
// liverow bench prefill: a prompt through a model, node by node, beside OpenBLAS.
#include "cli/bench/model_bench.h"
#include "cli/bench/sgemm.h"
#include "core/log.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <numeric>

namespace lr::cli {
namespace {

struct Options {
    ModelBenchFlags flags;
    std::int64_t tokens = 512, repeats = 3;
};

class PrefillBench {
  public:
    explicit PrefillBench(const Options& options) : options_(options) {}

    Status execute() {
        LR_TRY_ASSIGN(bench_, ModelBench::load(options_.flags, options_.tokens, 1));
        LR_TRY(measure());
        bench_->measure_floors();
        if (const auto sgemm = measure_sgemm(bench_->floors.threads))
            sgemm_ = *sgemm;
        else
            no_sgemm_ = sgemm.error().message();
        LR_TRY(count());
        if (options_.flags.bench.json)
            print_figures_json();
        else
            print_table();
        return {};
    }

  private:
    // A prompt is new each time, and so is its sequence; the first, which maps the files' pages,
    // does not count.
    Status measure() {
        Progress progress("prefill", (1 + options_.repeats) * options_.tokens, "tokens");
        std::optional<BusyMeter> busy;
        for (std::int64_t i = 0; i <= options_.repeats; ++i) {
            if (i == 1)
                busy.emplace();
            std::vector<double> steps;
            bench_->clock.clear();
            LR_TRY_ASSIGN(const engine::SequenceId id, bench_->engine->open_sequence());
            LR_TRY(bench_->prefill(id, i, options_.tokens, steps));
            LR_TRY(bench_->engine->close_sequence(id));
            if (i > 0)
                add_run(steps);
            progress.advance(options_.tokens);
        }
        busy_ = busy->share(bench_->engine->report().threads);
        return {};
    }

    // The steps of a prompt have the same nodes; their times add up.
    void add_run(const std::vector<double>& steps) {
        seconds_.add(std::accumulate(steps.begin(), steps.end(), 0.0));
        NodeSeconds sum;
        for (const NodeSeconds& step : bench_->clock.take(steps)) {
            sum.resize(step.size());
            for (std::size_t i = 0; i < step.size(); ++i)
                sum[i] += step[i];
        }
        runs_.push_back(std::move(sum));
    }

    // A row sees the tokens before its step and, on average, half of the step's.
    Status count() {
        std::vector<ops::Cost> costs;
        std::optional<graph::Step> step;
        for (std::int64_t first = 0; first < options_.tokens; first += bench_->piece_tokens()) {
            const std::int64_t rows = std::min(bench_->piece_tokens(), options_.tokens - first);
            LR_TRY_ASSIGN(
                step, bench_->live_step(graph::Phase::kPrefill, rows, 1, first + (rows + 1) / 2));
            costs.resize(step->nodes.size());
            for (std::size_t i = 0; i < costs.size(); ++i)
                costs[i] += step->nodes[i].cost;
        }
        for (const ops::Cost& cost : costs)
            total_ += cost;
        rows_ = node_rows(*step, costs, runs_, bench_->floors, options_.flags.table);
        return {};
    }

    double rate() const { return static_cast<double>(options_.tokens) / seconds_.median(); }
    double flops() const { return static_cast<double>(total_.flops) / seconds_.median(); }

    void print_table() const {
        const Floors& floors = bench_->floors;
        bench_->print_head();
        fmt::print("prompt      {} tokens in steps of up to {}, median of {}; ", options_.tokens,
                   bench_->piece_tokens(), options_.repeats);
        print_node_rows(rows_, options_.flags.table);
        fmt::print("\nprefill     {:.1f} ms (+-{:.1f} %), {:.2f} tok/s\n", 1e3 * seconds_.median(),
                   100 * seconds_.spread(), rate());
        fmt::print("arithmetic  {:.1f} GFLOP, {:.1f} GFLOP/s: {:.1f} % of the f32 peak\n",
                   static_cast<double>(total_.flops) / 1e9, flops() / 1e9,
                   100 * flops() / floors.flops);
        fmt::print("floor       {:.1f} ms: {:.1f} %\n", 1e3 * total_floor(rows_),
                   100 * total_floor(rows_) / seconds_.median());
        if (sgemm_)
            fmt::print("sgemm       {:.1f} GFLOP/s of OpenBLAS on {}^3, {} thread{} ({}): prefill "
                       "has {:.2f} of it\n",
                       sgemm_->flops / 1e9, sgemm_->size, sgemm_->threads,
                       sgemm_->threads == 1 ? "" : "s", sgemm_->library, flops() / sgemm_->flops);
        else
            fmt::print("sgemm       not measured: {}\n", no_sgemm_);
        print_busy(busy_);
    }

    Json sgemm_json() const {
        if (!sgemm_)
            return Json::object({{"missing", Json(no_sgemm_)}});
        return Json::object({{"library", Json(sgemm_->library)},
                             {"size", Json(sgemm_->size)},
                             {"threads", Json(sgemm_->threads)},
                             {"gflops", Json(sgemm_->flops / 1e9)}});
    }

    void print_figures_json() const {
        std::vector<JsonMember> members = bench_->head_json();
        const std::vector<JsonMember> figures = {
            {"tokens", Json(options_.tokens)},
            {"repeats", Json(options_.repeats)},
            {"prefill_ms", Json(1e3 * seconds_.median())},
            {"prefill_spread", Json(seconds_.spread())},
            {"tokens_per_second", Json(rate())},
            {"bytes", Json(total_.bytes())},
            {"flops", Json(total_.flops)},
            {"gflops", Json(flops() / 1e9)},
            {"peak_share", Json(flops() / bench_->floors.flops)},
            {"floor_ms", Json(1e3 * total_floor(rows_))},
            {"waited_share", Json(busy_)},
            {"sgemm", sgemm_json()},
            {"nodes", node_rows_json(rows_)},
        };
        members.insert(members.end(), figures.begin(), figures.end());
        print_json(std::move(members));
    }

    const Options& options_;
    std::unique_ptr<ModelBench> bench_;
    Samples seconds_;
    double busy_ = 0;
    std::vector<NodeSeconds> runs_;
    ops::Cost total_;
    std::vector<NodeRow> rows_;
    std::optional<SgemmFigure> sgemm_;
    std::string no_sgemm_; // why there is no figure
};

} // namespace

void add_bench_prefill(CLI::App& bench, Action& action) {
    auto options = std::make_shared<Options>();
    CLI::App* command =
        bench.add_subcommand("prefill", "A prompt through a model, node by node, beside OpenBLAS");
    add_model_bench_flags(*command, options->flags);
    command->add_option("-n,--tokens", options->tokens, "Tokens of the prompt")
        ->check(CLI::Range(1, 1 << 30))
        ->capture_default_str();
    command->add_option("-r,--repeats", options->repeats, "Prompts measured")
        ->check(CLI::Range(1, 100000))
        ->capture_default_str();
    command->callback(
        [&action, options] { action = [options] { return PrefillBench(*options).execute(); }; });
}

} // namespace lr::cli
