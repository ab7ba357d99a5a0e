// SPDX-License-Identifier: Apache-2.0
//
// liverow bench op: one op alone, cold and hot, for some weight formats and numbers of rows.
#include "cli/bench/commands.h"
#include "cli/bench/op_case.h"
#include "cli/bench/samples.h"
#include "core/clock.h"
#include "core/log.h"
#include "engine/binding.h"
#include "model/presets.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <memory>

namespace lr::cli {
namespace {

struct Options {
    BenchFlags bench;
    OpSpec spec;
    std::string preset = "35B-A3B", activations = "plain";
    std::vector<std::string> formats; // empty: bf16
    std::vector<std::int64_t> rows = {1};
    int rounds = 15;
};

// One line of the table.
struct Line {
    OpSpec spec;
    std::vector<std::unique_ptr<OpCase>> copies;
    ops::Cost cost;
    Samples cold, hot;
};

constexpr std::array kActivations = {
    ops::ActivationFormat::kPlain, ops::ActivationFormat::kFp8Token,
    ops::ActivationFormat::kFp8Group, ops::ActivationFormat::kFp8Static,
    ops::ActivationFormat::kNvfp4};

std::vector<std::string> activation_names() {
    std::vector<std::string> names;
    for (ops::ActivationFormat format : kActivations)
        names.emplace_back(ops::activation_format_name(format));
    return names;
}

std::vector<std::string> format_names() {
    std::vector<std::string> names;
    for (auto format :
         {ops::WeightFormat::kPlain, ops::WeightFormat::kFp8Block, ops::WeightFormat::kFp8Channel,
          ops::WeightFormat::kFp8Tensor, ops::WeightFormat::kNvfp4})
        names.emplace_back(numerics::weight_format_name(format));
    return names;
}

// Sizes that were not given are the preset's.
void complete(OpSpec& spec, const model::Config& config) {
    const auto fill = [](std::int64_t& size, std::int64_t usual) {
        size = size > 0 ? size : usual;
    };
    const bool down = spec.op == "experts_down";
    fill(spec.outputs, spec.op == "experts_gate_up" ? 2 * config.expert_width : config.hidden);
    fill(spec.inputs, down ? config.expert_width : config.hidden);
    fill(spec.experts, config.experts);
    fill(spec.per_token, config.experts_per_token);
    fill(spec.q_heads, config.q_heads);
    fill(spec.kv_heads, config.kv_heads);
    fill(spec.head_dim, config.head_dim);
    fill(spec.context, 1024);
    fill(spec.k_heads, config.k_heads);
    fill(spec.v_heads, config.v_heads);
    fill(spec.k_dim, config.k_dim);
    fill(spec.v_dim, config.v_dim);
}

class OpBench {
  public:
    explicit OpBench(const Options& options) : options_(options), pool_(options.bench.threads) {}

    Status execute() {
        LR_TRY(add_lines());
        LR_TRY_ASSIGN(const FloorMeter meter, FloorMeter::make());
        floors_ = meter.measure(pool_);
        const BusyMeter busy;
        measure();
        busy_ = busy.share(pool_.size());
        floors_.raise(meter.measure(pool_));
        if (options_.bench.json)
            print_lines_json();
        else
            print_table();
        return {};
    }

  private:
    Status add_lines() {
        OpSpec spec = options_.spec;
        LR_TRY_ASSIGN(const model::Config config, model::preset(options_.preset));
        complete(spec, config);
        const bool experts = spec.op.starts_with("experts");
        if (experts && (spec.experts < 1 || spec.per_token < 1 || spec.outputs < 1))
            return fail(Code::kInvalidArgument,
                        "{}: preset {} has no experts; expected --experts, --top-k, -N and -K",
                        spec.op, options_.preset);
        if (spec.context % ops::kKvPage != 0)
            return fail(Code::kInvalidArgument, "--context: expected a multiple of {}, got {}",
                        ops::kKvPage, spec.context);
        if (!has_weights(spec.op) && (!options_.formats.empty() || options_.activations != "plain"))
            return fail(Code::kInvalidArgument,
                        "--format: {} has no weights; expected neither --format nor --activations",
                        spec.op);
        for (ops::ActivationFormat format : kActivations)
            if (ops::activation_format_name(format) == options_.activations)
                spec.activations = format;
        // Half of what is free: the other half is for measuring the floors, and for others.
        left_ = facts_.free_bytes > 0 ? facts_.free_bytes / 2 : std::int64_t{4} << 30;
        for (const std::string& format :
             options_.formats.empty() ? std::vector<std::string>{"bf16"} : options_.formats)
            for (std::int64_t rows : options_.rows) {
                spec.weights = numerics::weight_format_from_name(format).value();
                spec.rows = rows;
                LR_TRY(add_line(spec));
            }
        return {};
    }

    // As many copies as together do not stay in the caches. Experts change from run to run, so one
    // copy that is large enough will do.
    Status add_line(const OpSpec& spec) {
        Line line{.spec = spec};
        const std::int64_t cold = cold_bytes(facts_);
        std::int64_t held = 0;
        do {
            LR_TRY_ASSIGN(auto made, OpCase::make(spec, line.copies.size() + 1, left_));
            made->reroute(0, pool_);
            held += made->bytes();
            left_ -= made->bytes();
            line.copies.push_back(std::move(made));
        } while (held < cold || (line.copies.size() < 2 && !spec.op.starts_with("experts")));
        line.cost = ops::cost(line.copies.front()->args());
        lines_.push_back(std::move(line));
        return {};
    }

    // Every line once a round, so that a machine that slows down slows all of them.
    void measure() {
        Progress progress("measuring", options_.rounds + 1, "rounds");
        for (int round = 0; round <= options_.rounds; ++round) {
            for (Line& line : lines_) {
                OpCase& copy = *line.copies[static_cast<std::size_t>(round) % line.copies.size()];
                copy.reroute(static_cast<std::uint64_t>(round) + 1, pool_);
                const double cold = run(copy), hot = run(copy);
                if (round > 0) { // the first touches code and pages
                    line.cold.add(cold);
                    line.hot.add(hot);
                }
            }
            progress.advance(1);
        }
    }

    double run(const OpCase& copy) {
        // Threads that sleep wake up here and not on the clock.
        pool_.parallel_for(pool_.size(), 1, [](std::int64_t, std::int64_t) {});
        const Stopwatch watch;
        engine::run_on_cpu(copy.args(), pool_);
        return watch.seconds();
    }

    std::string sizes() const {
        const OpSpec& s = lines_.front().spec;
        if (s.op == "attention")
            return fmt::format("{} query / {} key-value heads of {}, context {}", s.q_heads,
                               s.kv_heads, s.head_dim, s.context);
        if (s.op == "recurrent_update")
            return fmt::format("{} key / {} value heads of {} / {}", s.k_heads, s.v_heads, s.k_dim,
                               s.v_dim);
        const std::string experts =
            s.op == "linear" ? "" : fmt::format(", {} of {} experts a row", s.per_token, s.experts);
        return fmt::format("N {}, K {}{}", s.outputs, s.inputs, experts);
    }

    static std::string_view format_of(const OpSpec& spec) {
        return has_weights(spec.op) ? numerics::weight_format_name(spec.weights) : "-";
    }

    void print_table() const {
        print_machine(facts_, floors_);
        fmt::print("op          {}: {}; {} activations, medians of {} interleaved runs\n\n",
                   options_.spec.op, sizes(),
                   has_weights(options_.spec.op) ? options_.activations : "bf16", options_.rounds);
        fmt::print("{:<12} {:>5} {:>11} {:>6} {:>8} {:>8} {:>9} {:>8} {:>6} {:>11}\n", "format",
                   "n", "us", "+-%", "w GB/s", "GB/s", "GFLOP/s", "% floor", "by", "hot us");
        for (const Line& line : lines_) {
            const double seconds = line.cold.median();
            fmt::print(
                "{:<12} {:>5} {:>11.1f} {:>6.1f} {:>8.2f} {:>8.2f} {:>9.1f} {:>8.1f} {:>6} "
                "{:>11.1f}\n",
                format_of(line.spec), line.spec.rows, 1e6 * seconds, 100 * line.cold.spread(),
                static_cast<double>(line.cost.weight_bytes) / seconds / 1e9,
                static_cast<double>(line.cost.bytes()) / seconds / 1e9,
                static_cast<double>(line.cost.flops) / seconds / 1e9,
                100 * floors_.seconds(line.cost) / seconds, bound(line), 1e6 * line.hot.median());
        }
        fmt::print("\nus: nothing of it in the caches; hot: run again at once; +-%: distance of "
                   "the quartiles; w: weights\n");
        print_busy(busy_);
    }

    const char* bound(const Line& line) const {
        return static_cast<double>(line.cost.bytes()) / floors_.read <
                       static_cast<double>(line.cost.flops) / floors_.flops
                   ? "FLOPs"
                   : "bytes";
    }

    void print_lines_json() const {
        std::vector<JsonMember> members = machine_json(facts_, floors_);
        JsonArray rows;
        for (const Line& line : lines_)
            rows.push_back(
                Json::object({{"format", Json(format_of(line.spec))},
                              {"n", Json(line.spec.rows)},
                              {"copies", Json(static_cast<std::int64_t>(line.copies.size()))},
                              {"cold_us", Json(1e6 * line.cold.median())},
                              {"cold_spread", Json(line.cold.spread())},
                              {"hot_us", Json(1e6 * line.hot.median())},
                              {"hot_spread", Json(line.hot.spread())},
                              {"weight_bytes", Json(line.cost.weight_bytes)},
                              {"bytes", Json(line.cost.bytes())},
                              {"flops", Json(line.cost.flops)},
                              {"floor_us", Json(1e6 * floors_.seconds(line.cost))},
                              {"bound", Json(bound(line))}}));
        members.push_back({"op", Json(options_.spec.op)});
        members.push_back({"sizes", Json(sizes())});
        members.push_back({"activations", Json(options_.activations)});
        members.push_back({"rounds", Json(options_.rounds)});
        members.push_back({"waited_share", Json(busy_)});
        members.push_back({"rows", Json(std::move(rows))});
        print_json(std::move(members));
    }

    const Options& options_;
    ThreadPool pool_;
    const MachineFacts facts_ = machine_facts();
    Floors floors_;
    double busy_ = 0;
    std::int64_t left_ = 0; // bytes that cases may still hold
    std::vector<Line> lines_;
};

void add_size(CLI::App* command, const char* name, std::int64_t& size, const char* help) {
    command->add_option(name, size, help)
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 24));
}

void add_sizes(CLI::App* command, OpSpec& spec) {
    add_size(command, "-N", spec.outputs, "Rows of the weight: outputs (gate_up: gate and up)");
    add_size(command, "-K", spec.inputs, "Columns of the weight: inputs");
    add_size(command, "--experts", spec.experts, "Experts");
    add_size(command, "--top-k", spec.per_token, "Experts that a row goes to");
    add_size(command, "--heads", spec.q_heads, "Attention: query heads");
    add_size(command, "--kv-heads", spec.kv_heads, "Attention: key-value heads");
    add_size(command, "--head-dim", spec.head_dim, "Attention: width of a head");
    add_size(command, "--context", spec.context, "Attention: tokens that a row sees (1024)");
    add_size(command, "--k-heads", spec.k_heads, "recurrent_update: key heads");
    add_size(command, "--v-heads", spec.v_heads, "recurrent_update: value heads");
    add_size(command, "--k-dim", spec.k_dim, "recurrent_update: width of a key head");
    add_size(command, "--v-dim", spec.v_dim, "recurrent_update: width of a value head");
}

} // namespace

void add_bench_op(CLI::App& bench, Action& action) {
    auto options = std::make_shared<Options>();
    CLI::App* command = bench.add_subcommand("op", "One op alone, out of memory and out of caches");
    command->add_option("--op", options->spec.op, "Which one")
        ->check(CLI::IsMember(op_names()))
        ->capture_default_str();
    command->add_option("--format", options->formats, "Formats of the weights (bf16): bf16,nvfp4")
        ->delimiter(',')
        ->check(CLI::IsMember(format_names()));
    command->add_option("--activations", options->activations, "Format of the activations")
        ->check(CLI::IsMember(activation_names()))
        ->capture_default_str();
    command->add_option("-n,--rows", options->rows, "Rows: 1,4,16")
        ->delimiter(',')
        ->check(CLI::Range(1, 65536))
        ->capture_default_str();
    add_sizes(command, options->spec);
    command
        ->add_option("--preset", options->preset,
                     "The model whose sizes stand in for those missing")
        ->capture_default_str();
    command->add_option("-r,--rounds", options->rounds, "Runs of each line")
        ->check(CLI::Range(1, 100000))
        ->capture_default_str();
    add_bench_flags(*command, options->bench);
    command->footer("Example: liverow bench op --op linear --format bf16,fp8-block,nvfp4 -n 1,16");
    command->callback(
        [&action, options] { action = [options] { return OpBench(*options).execute(); }; });
}

} // namespace lr::cli
