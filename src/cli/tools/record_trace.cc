// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/machine.h"
#include "cli/bench/samples.h"
#include "cli/engine_flags.h"
#include "cli/tools/trace_runs.h"
#include "core/clock.h"
#include "core/log.h"
#include "engine/engine.h"
#include "graph/machine.h"
#include "model/open.h"
#include "numerics/counter_rng.h"
#include "report/timeline.h"
#include "trace/chrome.h"
#include "trace/csv.h"
#include "trace/step_recorder.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <utility>

namespace lr::cli {
namespace {

constexpr std::int64_t kWarmUp = 3;

Status write_file(const std::filesystem::path& path, const std::string& text) {
    std::ofstream file(path, std::ios::binary);
    file << text;
    file.close();
    if (!file)
        return fail(Code::kInternal, "{}: cannot be written", path.string());
    return {};
}

class TraceRun {
  public:
    explicit TraceRun(const TraceOptions& options) : options_(options) {}

    Status execute() {
        LR_TRY(check());
        LR_TRY_ASSIGN(opened_, model::open_model(options_.model));
        LR_TRY(make_folder());
        for (const std::string& text : opened_.disagreements)
            log_warning("{}", text);
        // A launch is a node; a dozen more for prologue and epilogue.
        const std::int64_t launches = 40 * (opened_.config().layer_count() + 1);
        const std::int64_t steps = options_.rows + options_.steps +
                                   std::max(kWarmUp, options_.overhead ? options_.context : 0);
        recorder_.emplace(static_cast<std::size_t>(launches * steps), 1);
        LR_TRY_ASSIGN(engine_, make_engine(&*recorder_));
        std::vector<double> seconds;
        LR_TRY(run(*engine_, kWarmUp, seconds, "warming up"));
        recorder_->clear();
        seconds.clear();
        LR_TRY(run(*engine_, options_.steps, seconds, "recording"));
        LR_TRY(measure_floors());
        LR_TRY(write(seconds));
        return options_.overhead ? measure_overhead() : Status();
    }

  private:
    Status check() const {
        if (options_.model.empty())
            return fail(Code::kInvalidArgument, "trace: expected MODEL, or the subcommand analyze");
        if (options_.out.empty())
            return fail(Code::kInvalidArgument, "trace: expected --out FOLDER");
        return {};
    }

    // Before the run, so that none is lost for want of a folder.
    Status make_folder() const {
        std::error_code error;
        std::filesystem::create_directories(options_.out, error);
        if (error)
            return fail(Code::kInvalidArgument, "--out {}: {}", options_.out, error.message());
        return {};
    }

    Result<std::unique_ptr<engine::Engine>> make_engine(engine::NodeObserver* observer) const {
        const std::int64_t rows = (options_.context + 63) / 64 * 64;
        return engine::Engine::load(opened_,
                                    {.place = place_of(options_.device),
                                     .threads = options_.threads,
                                     .context = options_.context + options_.steps + kWarmUp,
                                     .sequences = options_.rows,
                                     .prefill_rows = std::max<std::int64_t>(64, rows),
                                     .observer = observer});
    }

    std::int32_t token(std::int64_t sequence, std::int64_t position) const {
        const std::uint64_t bits = numerics::counter_bits(21, static_cast<std::uint64_t>(sequence),
                                                          static_cast<std::uint64_t>(position));
        return static_cast<std::int32_t>(
            numerics::below(bits, static_cast<std::uint64_t>(opened_.config().vocab_size)));
    }

    // Prompts one after the other, then decode steps; the steps' times in their order.
    Status run(engine::Engine& engine, std::int64_t steps, std::vector<double>& seconds,
               const char* what) {
        Progress progress(what, options_.rows + steps, "steps");
        std::vector<engine::SequenceId> ids;
        for (std::int64_t s = 0; s < options_.rows; ++s) {
            LR_TRY_ASSIGN(const engine::SequenceId id, engine.open_sequence());
            ids.push_back(id);
            engine::StepInput input{.phase = graph::Phase::kPrefill};
            engine::Piece& piece = input.pieces.emplace_back();
            piece.sequence = id;
            for (std::int64_t p = 0; p < options_.context; ++p)
                piece.tokens.push_back(token(s, p));
            LR_TRY(step(engine, std::move(input), seconds));
            progress.advance(1);
        }
        for (std::int64_t i = 0; i < steps; ++i) {
            LR_TRY(decode(engine, ids, i, seconds));
            progress.advance(1);
        }
        for (const engine::SequenceId id : ids)
            LR_TRY(engine.close_sequence(id));
        return {};
    }

    Status decode(engine::Engine& engine, const std::vector<engine::SequenceId>& ids,
                  std::int64_t number, std::vector<double>& seconds) {
        engine::StepInput input{.phase = graph::Phase::kDecode};
        for (std::size_t s = 0; s < ids.size(); ++s)
            input.pieces.push_back(
                {.sequence = ids[s],
                 .tokens = {token(static_cast<std::int64_t>(s), options_.context + number)}});
        return step(engine, std::move(input), seconds);
    }

    static Status step(engine::Engine& engine, engine::StepInput input,
                       std::vector<double>& seconds) {
        LR_TRY_ASSIGN(const engine::Ticket ticket, engine.submit(std::move(input)));
        LR_TRY_ASSIGN(const engine::StepOutput output, engine.wait(ticket));
        seconds.push_back(output.seconds);
        return {};
    }

    Status measure_floors() {
        if (place_of(options_.device).is_cuda())
            return find_machine();
        LR_TRY_ASSIGN(const FloorMeter meter, FloorMeter::make());
        ThreadPool pool(options_.threads);
        floors_ = meter.measure(pool);
        return {};
    }

    // A GPU's floors come from its description, where there is one.
    Status find_machine() {
        if (engine_->report().device.find("H200") == std::string::npos)
            return {};
        LR_TRY_ASSIGN(machine_, graph::machine("h200"));
        return {};
    }

    // In microseconds. Operations count at the FP8 rate, which no product of any format beats.
    double floor_us(const ops::Cost& cost) const {
        if (!machine_)
            return floors_.flops > 0 ? 1e6 * floors_.seconds(cost) : -1;
        graph::Work work;
        work.read_bytes = cost.read_bytes;
        work.write_bytes = cost.write_bytes;
        work.flops[static_cast<std::size_t>(graph::Unit::kFp8)] = cost.flops;
        return graph::floor_of(*machine_, work).us;
    }

    std::string floors_text() const {
        if (machine_)
            return fmt::format("{}. Floors: each byte once at {:.0f} GB/s of memory, or each "
                               "operation at {:.0f} TFLOP/s ({}).",
                               engine_->report().device, machine_->read.value, machine_->fp8.value,
                               machine_->read.source);
        return fmt::format("{}, {}. Floors: each byte once at {:.1f} GB/s of memory, or each "
                           "operation at {:.0f} GFLOP/s, measured beside it; what stays in the "
                           "caches can beat them.",
                           machine_facts().processor, engine_->report().device, floors_.read / 1e9,
                           floors_.flops / 1e9);
    }

    // The nodes of a step that ran, with the bytes of the rows that lived.
    trace::Program program(const graph::Step& ran) const {
        const bool prefill = ran.shape.phase == graph::Phase::kPrefill;
        graph::StepShape shape = ran.shape;
        shape.rows = prefill ? options_.context : options_.rows;
        shape.sequences = shape.logit_rows = shape.slots = prefill ? 1 : options_.rows;
        shape.context = options_.context + (prefill ? 0 : options_.steps / 2);
        shape.kv_pages = shape.sequences * shape.pages_per_sequence();
        const auto floor = [this](const ops::Cost& cost) { return floor_us(cost); };
        const Result<graph::Step> live = graph::build_step(opened_.model(), {}, shape, ran.options);
        return live && live->nodes.size() == ran.nodes.size()
                   ? trace::describe_nodes(ran, floor, &*live)
                   : trace::describe_nodes(ran, floor);
    }

    Status write(const std::vector<double>& seconds) {
        const std::vector<trace::Row> rows =
            recorder_->rows([this](const graph::Step& step) { return program(step); });
        if (recorder_->dropped() > 0)
            return fail(Code::kInternal, "trace: {} launches were dropped", recorder_->dropped());
        const std::filesystem::path folder = options_.out;
        LR_TRY(write_file(folder / "trace.csv", trace::to_csv(rows)));
        LR_TRY(write_file(folder / "trace.json", trace::to_chrome_json(rows)));
        LR_TRY(write_timeline(rows, folder));
        print(rows, seconds);
        return {};
    }

    // Of the last decode step.
    Status write_timeline(const std::vector<trace::Row>& rows,
                          const std::filesystem::path& folder) {
        std::vector<trace::Row> last;
        for (const trace::Row& row : rows)
            if (row.step == rows.back().step)
                last.push_back(row);
        graph::StepShape shape{.phase = graph::Phase::kDecode,
                               .rows = options_.rows,
                               .sequences = options_.rows,
                               .logit_rows = options_.rows,
                               .context = options_.context,
                               .slots = options_.rows,
                               .kv_pages = options_.rows};
        LR_TRY_ASSIGN(const graph::Step step, graph::build_step(opened_.model(), {}, shape));
        LR_TRY_ASSIGN(const trace::Analysis analysis, trace::analyse(std::move(last), step, false));
        const std::string title = fmt::format("{}: decode step of {} row{}", options_.model,
                                              options_.rows, options_.rows == 1 ? "" : "s");
        return write_file(folder / "timeline.html",
                          report::timeline_page(analysis, title, floors_text()));
    }

    void print(const std::vector<trace::Row>& rows, const std::vector<double>& seconds) const {
        std::vector<double> covered(seconds.size());
        for (const trace::Row& row : rows)
            covered[static_cast<std::size_t>(row.step)] += 1e-6 * row.duration_us;
        double least = 1, sum = 0, whole = 0;
        for (std::size_t s = 0; s < seconds.size(); ++s) {
            least = std::min(least, covered[s] / seconds[s]);
            sum += covered[s];
            whole += seconds[s];
        }
        fmt::print("recorded    {} launches of {} steps: {} of {} tokens, then {} decode steps of "
                   "{} row{}\n",
                   rows.size(), seconds.size(), options_.rows == 1 ? "a prompt" : "prompts",
                   options_.context, options_.steps, options_.rows, options_.rows == 1 ? "" : "s");
        fmt::print("coverage    launches make up {:.2f} % of the steps' run time, {:.2f} % of the "
                   "least covered\n",
                   100 * sum / whole, 100 * least);
        for (const char* name : {"trace.csv", "trace.json", "timeline.html"})
            fmt::print("written     {}\n", (std::filesystem::path(options_.out) / name).string());
    }

    // Decode steps of two engines by turns, so that what else the machine does meets both.
    Status measure_overhead() {
        recorder_->clear();
        LR_TRY_ASSIGN(const auto plain, make_engine(nullptr));
        engine::Engine* engines[] = {plain.get(), engine_.get()};
        std::vector<engine::SequenceId> ids[2];
        std::vector<double> ignored, seconds[2];
        for (int e = 0; e < 2; ++e)
            for (std::int64_t s = 0; s < options_.rows; ++s) {
                LR_TRY_ASSIGN(const engine::SequenceId id, engines[e]->open_sequence());
                ids[e].push_back(id);
                engine::StepInput input{.phase = graph::Phase::kPrefill};
                input.pieces.push_back({.sequence = id, .tokens = {token(s, 0)}});
                LR_TRY(step(*engines[e], std::move(input), ignored));
            }
        for (std::int64_t i = 0; i < options_.context + options_.steps; ++i)
            for (int e = 0; e < 2; ++e) {
                const int which = (i + e) % 2 == 0 ? 0 : 1;
                LR_TRY(decode(*engines[which], ids[which], i, seconds[which]));
            }
        recorder_launches_ = static_cast<std::int64_t>(
            recorder_
                ->rows([](const graph::Step& step) { return trace::describe_nodes(step, nullptr); })
                .size());
        Samples medians[2], ratios;
        for (std::size_t i = 0; i < seconds[0].size(); ++i) {
            medians[0].add(seconds[0][i]);
            medians[1].add(seconds[1][i]);
            ratios.add(seconds[1][i] / seconds[0][i]);
        }
        LR_TRY_ASSIGN(const double each, cost_of_one());
        const double per_step =
            each * static_cast<double>(recorder_launches_) / static_cast<double>(seconds[1].size());
        fmt::print("overhead    {:.0f} ns a launch, {:.1f} us a step: {:.2f} % of one without it\n",
                   1e9 * each, 1e6 * per_step, 100 * per_step / medians[0].median());
        fmt::print("            {} decode steps by turns: {:.1f} us without, {:.1f} us with the "
                   "recorder; ratio of pairs {:+.2f} % in the median, quartiles {:.1f} % apart\n",
                   seconds[0].size(), 1e6 * medians[0].median(), 1e6 * medians[1].median(),
                   100 * (ratios.median() - 1), 100 * ratios.spread());
        return {};
    }

    // Seconds that recording a launch takes: the clock read, the call, the event stored.
    Result<double> cost_of_one() const {
        LR_TRY_ASSIGN(const graph::Step step,
                      graph::build_step(opened_.model(), {}, {.phase = graph::Phase::kDecode}));
        constexpr std::int64_t kTimes = 200'000;
        trace::StepRecorder recorder(static_cast<std::size_t>(kTimes), 1);
        engine::NodeObserver& observer = recorder;
        const Stopwatch watch;
        std::int64_t last = monotonic_ns();
        for (std::int64_t i = 0; i < kTimes; ++i) {
            const graph::Node& node = step.nodes[static_cast<std::size_t>(i) % step.nodes.size()];
            const std::int64_t start = std::exchange(last, monotonic_ns());
            LR_TRY(observer.after({0, step, node, node.args, start, last}));
        }
        return watch.seconds() / static_cast<double>(kTimes);
    }

    const TraceOptions& options_;
    model::OpenModel opened_;
    std::int64_t recorder_launches_ = 0; // of the decode steps by turns and their prompts
    std::optional<trace::StepRecorder> recorder_;
    std::unique_ptr<engine::Engine> engine_;
    Floors floors_;
    std::optional<graph::Machine> machine_; // of a GPU
};

} // namespace

Status record_trace(const TraceOptions& options) {
    return TraceRun(options).execute();
}

} // namespace lr::cli
