// SPDX-License-Identifier: Apache-2.0
#include "cli/tools/verify_runs.h"

#include "core/clock.h"
#include "core/log.h"
#include "engine/weights.h"
#include "graph/verify_plan.h"
#include "model/presets.h"
#include "model/synth.h"
#include "numerics/counter_rng.h"

#include <fmt/ranges.h>

#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <unistd.h>

#include "verify/cpu_device.h"
#include "verify/cuda_device.h"
#include "verify/free_run.h"
#include "verify/launch_local.h"
#include "verify/session.h"

namespace lr::cli {
namespace {

using verify::HostTensors;

// A folder that goes away.
class TemporaryFolder {
  public:
    TemporaryFolder()
        : path_(std::filesystem::temp_directory_path() /
                fmt::format("liverow-verify-{}", ::getpid())) {}
    ~TemporaryFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    std::string path() const { return path_.string(); }

  private:
    std::filesystem::path path_;
};

Result<int> number(std::string_view text, std::string_view flag, std::string_view whole) {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < 1)
        return fail(Code::kInvalidArgument,
                    "{}: expected a number such as 7 or a range such as 6-9, got \"{}\"", flag,
                    whole);
    return value;
}

Result<verify::Selection> selection_of(const VerifyOptions& options) {
    verify::Selection selection;
    selection.path = options.path == "all" ? "" : options.path;
    selection.layer = static_cast<std::int32_t>(options.layer);
    if (options.nodes.empty())
        return selection;
    const std::string_view text = options.nodes;
    const std::size_t dash = text.find('-');
    LR_TRY_ASSIGN(selection.first, number(text.substr(0, dash), "--nodes", text));
    selection.last = selection.first;
    if (dash != std::string_view::npos) {
        LR_TRY_ASSIGN(selection.last, number(text.substr(dash + 1), "--nodes", text));
    }
    if (selection.last < selection.first)
        return fail(Code::kInvalidArgument,
                    "--nodes: expected the smaller number first, got \"{}\"", text);
    return selection;
}

Result<std::optional<verify::Injection>> injection_of(const std::string& text) {
    if (text.empty())
        return std::optional<verify::Injection>();
    const std::size_t colon = text.find(':');
    verify::Injection injection{.node = text.substr(0, colon), .faults = {}};
    if (colon == std::string::npos) {
        injection.faults.assign(std::begin(verify::kFaults), std::end(verify::kFaults));
        return std::optional(injection);
    }
    const auto fault = verify::fault_from_name(std::string_view(text).substr(colon + 1));
    if (!fault)
        return fail(
            Code::kInvalidArgument,
            "--inject: expected a fault of element, row, swap, nan, stale, id, pad, got \"{}\"",
            text.substr(colon + 1));
    injection.faults = {*fault};
    return std::optional(injection);
}

std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> parts;
    for (std::size_t from = 0; from <= text.size();) {
        const std::size_t comma = std::min(text.find(',', from), text.size());
        parts.push_back(text.substr(from, comma - from));
        from = comma + 1;
    }
    return parts;
}

// The plans to verify: each a list of rewrites, none for the reference.
std::vector<std::vector<std::string>> plans_of(const VerifyOptions& options) {
    std::vector<std::vector<std::string>> plans;
    if (options.plan == "all") {
        plans.emplace_back();
        for (const graph::Rewrite& rewrite : graph::all_rewrites())
            plans.push_back({std::string(rewrite.name)});
        return plans;
    }
    plans.push_back(options.plan == "reference" ? std::vector<std::string>() : split(options.plan));
    return plans;
}

std::string plan_name(const std::vector<std::string>& rewrites) {
    std::string name;
    for (const std::string& rewrite : rewrites)
        name += (name.empty() ? "" : ",") + rewrite;
    return name.empty() ? "reference" : name;
}

// The plan, proved; nothing where a rewrite's nodes do not stand in this step.
Result<std::optional<graph::Plan>> make_plan(const graph::Step& step,
                                             const std::vector<std::string>& rewrites) {
    graph::Plan plan = graph::reference_plan(step);
    for (const std::string& rewrite : rewrites) {
        LR_TRY_ASSIGN(const graph::Rewrite* found, graph::find_rewrite(rewrite));
        if (graph::find_matches(step, *found).empty())
            return std::optional<graph::Plan>();
        LR_TRY_ASSIGN(plan, graph::apply_rewrite(step, plan, rewrite));
    }
    LR_TRY(graph::verify_plan(step, plan));
    return std::optional(std::move(plan));
}

// Prompts of different lengths; the second sequence is drawn with every sampling parameter, and
// asks for log-probabilities.
verify::Workload workload_of(const VerifyOptions& options, std::int64_t vocab) {
    verify::Workload workload{
        .requests = {}, .decode_steps = options.steps, .all_logits = options.free_run};
    const numerics::CounterRng rng("verify", 1);
    std::uint64_t drawn = 0;
    for (std::int64_t r = 0; r < options.rows; ++r) {
        verify::Request& request = workload.requests.emplace_back();
        const std::int64_t length = std::max<std::int64_t>(2, options.prompt_tokens >> r);
        for (std::int64_t i = 0; i < length; ++i)
            request.prompt.push_back(static_cast<std::int32_t>(
                numerics::below(rng.bits(drawn++), static_cast<std::uint64_t>(vocab))));
    }
    if (options.rows > 1) {
        workload.requests[1].sampling = {.temperature = 0.8f,
                                         .top_k = 40,
                                         .top_p = 0.95f,
                                         .min_p = 0.01f,
                                         .repetition = 1.1f,
                                         .frequency = 0.2f,
                                         .presence = 0.1f,
                                         .bias = {{3, 1.5f}, {7, -2.0f}},
                                         .seed = 11};
        workload.requests[1].logprobs = {.top = 5, .targets = {}};
    }
    return workload;
}

// The bytes of every state.
using Snapshot = std::vector<std::vector<std::byte>>;

Snapshot save_states(const graph::Step& step, const HostTensors& tensors) {
    Snapshot saved;
    for (std::size_t t = 0; t < step.tensors.size(); ++t)
        if (step.tensors[t].role == graph::Role::kState) {
            const auto bytes = tensors.bytes(static_cast<graph::TensorId>(t));
            saved.emplace_back(bytes.begin(), bytes.end());
        }
    return saved;
}

void restore_states(const graph::Step& step, const HostTensors& tensors, const Snapshot& saved) {
    std::size_t next = 0;
    for (std::size_t t = 0; t < step.tensors.size(); ++t)
        if (step.tensors[t].role == graph::Role::kState) {
            const auto bytes = tensors.bytes(static_cast<graph::TensorId>(t));
            std::memcpy(bytes.data(), saved[next++].data(), bytes.size());
        }
}

class Verification {
  public:
    explicit Verification(const VerifyOptions& options)
        : options_(options), pool_(options.threads) {}

    Status execute() {
        LR_TRY_ASSIGN(selection_, selection_of(options_));
        LR_TRY_ASSIGN(injection_, injection_of(options_.inject));
        LR_TRY(check_flags());
        LR_TRY(open());
        workload_ = workload_of(options_, opened_.config().vocab_size);
        session_.emplace(workload_);
        LR_TRY_ASSIGN(const graph::Step step, build(session_->steps() - 1, step_options()));
        LR_TRY(check_node(step));
        LR_TRY_ASSIGN(auto states, engine::StateStore::allocate(step));
        LR_TRY_ASSIGN(auto device_states, engine::StateStore::allocate(step));
        LR_TRY_ASSIGN(const auto device, make_device(device_states));
        print_head(*device);
        return options_.free_run ? free_run(*device, states) : launch_local(*device, states);
    }

  private:
    Result<std::unique_ptr<verify::Device>> make_device(engine::StateStore& states) {
        if (options_.device == "cpu")
            return std::make_unique<verify::CpuDevice>(*weights_, states, pool_);
        LR_TRY_ASSIGN(std::unique_ptr<verify::Device> device,
                      verify::CudaDevice::create(*weights_, pool_));
        return device;
    }

    Status check_flags() const {
        if (options_.model.empty() == options_.preset.empty())
            return fail(Code::kInvalidArgument, "verify: expected either MODEL or --preset");
        if (options_.free_run && (injection_ || selection_.narrow() || selection_.layer >= 0 ||
                                  !selection_.path.empty()))
            return fail(Code::kInvalidArgument, "--free-run: runs whole steps: expected none of "
                                                "--path, --nodes, --layer, --inject");
        return {};
    }

    Status open() {
        std::string folder = options_.model;
        if (folder.empty()) {
            LR_TRY_ASSIGN(model::Config config, model::preset(options_.preset));
            config = model::with_layers(config, options_.layers);
            config.mtp_layers = 0;
            folder = temporary_.path();
            model::SynthOptions synth;
            synth.format = numerics::weight_format_from_name(options_.format)
                               .value_or(model::WeightFormat::kPlain);
            LR_TRY_ASSIGN(const model::SynthReport report,
                          model::synth_checkpoint(folder, config, synth, pool_));
            log_info("{}: synthetic weights, {}", options_.preset, format_bytes(report.bytes));
        }
        LR_TRY_ASSIGN(opened_, model::open_model(folder));
        for (const std::string& text : opened_.disagreements)
            log_warning("{}", text);
        LR_TRY_ASSIGN(engine::Weights weights, engine::Weights::bind(opened_, {}));
        weights_.emplace(std::move(weights));
        return {};
    }

    graph::StepOptions step_options() const {
        return {.precision =
                    options_.precision == "f32" ? ops::Precision::kF32 : ops::Precision::kModel,
                .numerics = options_.numerics == "seed" ? ops::Numerics::kSeed : ops::Numerics::kHf,
                .w4a4 = options_.activations == "quant",
                .a16 = options_.activations == "16"};
    }

    Result<graph::Step> build(std::int64_t step, const graph::StepOptions& options) const {
        return graph::build_step(opened_.model(), {}, session_->shape(step), options);
    }

    // That the node to spoil exists in a step of either phase.
    Status check_node(const graph::Step& decode) const {
        if (!injection_)
            return {};
        LR_TRY_ASSIGN(const graph::Step prefill, build(0, step_options()));
        for (const graph::Step* step : {&decode, &prefill})
            for (const graph::Node& node : step->nodes)
                if (node.id == injection_->node && !node.alias)
                    return {};
        return fail(
            Code::kInvalidArgument,
            "--inject: expected a node such as L0.7, pro.1 or epi.3 that launches, got \"{}\"",
            injection_->node);
    }

    void print_head(const verify::Device& device) const {
        const std::string what =
            options_.model.empty() ? options_.preset + " (synthetic)" : options_.model;
        fmt::print("model       {}: {} layers, {} of weights, precision {}\n", what,
                   opened_.config().layer_count(), format_bytes(weights_->bytes()),
                   options_.precision);
        fmt::print("device      {}\n", device.name());
        fmt::print("reference   cpu/reference: each op's definition in f64, roundings counted\n");
        fmt::print(
            "steps       {} prompts of up to {} tokens, each in two prefills; {} decode steps; "
            "padding rows in all\n",
            options_.rows, options_.prompt_tokens, options_.steps);
    }

    std::vector<std::int32_t> drawn(const graph::Step& step, const HostTensors& tensors,
                                    const std::vector<engine::LogitRange>& ranges) const {
        std::vector<std::int32_t> tokens;
        const auto* ids = tensors.view(step.outputs.tokens).as<std::int32_t>();
        for (const engine::LogitRange& range : ranges)
            tokens.push_back(std::max(0, ids[range.first + range.count - 1]));
        return tokens;
    }

    Status launch_local(verify::Device& device, const engine::StateStore& states);
    Status one_step(verify::Device& device, const engine::StateStore& states, std::int64_t number,
                    std::vector<verify::LaunchLocal>& runs);
    Status judge(const std::vector<verify::LaunchLocal>& runs) const;
    Status free_run(verify::Device& device, const engine::StateStore& states);

    const VerifyOptions& options_;
    TemporaryFolder temporary_;
    ThreadPool pool_;
    verify::Selection selection_;
    std::optional<verify::Injection> injection_;
    model::OpenModel opened_;
    std::optional<engine::Weights> weights_;
    verify::Workload workload_;
    std::optional<verify::Session> session_;
};

// All plans on the same states: each begins from what the step began with.
Status Verification::one_step(verify::Device& device, const engine::StateStore& states,
                              std::int64_t number, std::vector<verify::LaunchLocal>& runs) {
    LR_TRY_ASSIGN(const graph::Step step, build(number, step_options()));
    const verify::StepWork work = session_->work(number);
    LR_TRY_ASSIGN(HostTensors tensors, HostTensors::allocate(step, *weights_, states));
    const auto ranges = session_->fill(step, work, tensors.inputs().data());
    const Snapshot before = save_states(step, tensors);
    const auto plans = plans_of(options_);
    bool ran = false;
    for (std::size_t p = 0; p < plans.size(); ++p) {
        LR_TRY_ASSIGN(const std::optional<graph::Plan> plan, make_plan(step, plans[p]));
        if (!plan)
            continue;
        if (ran)
            restore_states(step, tensors, before);
        ran = true;
        LR_TRY(device.prepare(step, *plan));
        Progress progress(fmt::format("{}, plan {}", work.name, plan_name(plans[p])),
                          std::ssize(plan->launches), "launches");
        LR_TRY(runs[p].run(work.name, step, *plan, tensors, [&] { progress.advance(1); }));
    }
    if (!ran)
        LR_TRY(verify::run_reference(step, tensors, pool_, nullptr));
    session_->drew(drawn(step, tensors, ranges));
    return {};
}

void print_ops(const verify::LaunchReport& report) {
    fmt::print("\n{:<20}{:>10}{:>13}{:>13}{:>12}{:>16}{:>14}\n", "op", "launches", "elements",
               "may differ", "do differ", "most of bound", "bound / rms");
    for (const auto& [stem, entry] : report.ops) {
        const auto& [launches, sum] = entry;
        fmt::print("{:<20}{:>10}{:>13}{:>13}{:>12}{:>15.1f}%{:>14.1e}\n", stem, launches,
                   sum.elements, sum.bounded, sum.apart, 100 * sum.largest_share,
                   sum.largest_bound);
    }
}

void print_faults(const verify::LaunchReport& report) {
    fmt::print("\nfaults put into results, and what was noticed\n");
    for (const verify::InjectedFault& fault : report.faults)
        fmt::print("  {:<8} {}: {}: {} {}: {}\n", verify::fault_name(fault.fault), fault.step,
                   fault.node, fault.tensor, fault.place,
                   fault.found
                       ? fmt::format("caught at [{}]: expected {} ({}), got {}",
                                     fmt::join(fault.found->at, ", "), fault.found->reference,
                                     fault.found->expected, fault.found->device)
                       : std::string("NOT NOTICED"));
}

Status Verification::judge(const std::vector<verify::LaunchLocal>& runs) const {
    const auto plans = plans_of(options_);
    std::int64_t launches = 0, missed = 0, faults = 0;
    const verify::Divergence* first = nullptr;
    std::size_t divergences = 0;
    for (std::size_t p = 0; p < plans.size(); ++p) {
        const verify::LaunchReport& report = runs[p].report();
        launches += report.launches;
        fmt::print("\nplan {}: {} launches compared", plan_name(plans[p]), report.launches);
        for (const auto& [how, count] : report.how)
            fmt::print("; {} as {}", count, how);
        fmt::print("{}\n", report.launches == 0 ? " (its nodes stand nowhere here)" : "");
        if (report.launches > 0 && plans.size() == 1)
            print_ops(report);
        if (!report.faults.empty())
            print_faults(report);
        for (const verify::InjectedFault& fault : report.faults)
            missed += !fault.found;
        faults += std::ssize(report.faults);
        divergences += report.divergences.size();
        for (const verify::Divergence& d : report.divergences)
            first = first ? first : &d;
        for (std::size_t i = 0; i < std::min<std::size_t>(5, report.divergences.size()); ++i)
            fmt::print("  {}\n", report.divergences[i].text());
    }
    if (first)
        return fail(Code::kInternal, "verify: {} of {} launches diverge; the first: {}",
                    divergences, launches, first->text());
    if (launches == 0)
        return fail(
            Code::kInvalidArgument,
            "verify: no launch of this model is in --path {}, --nodes {}, --layer {}, --plan {}",
            options_.path, options_.nodes.empty() ? "all" : options_.nodes, options_.layer,
            options_.plan);
    if (injection_ && faults == 0)
        return fail(Code::kInvalidArgument,
                    "--inject: nothing that {} writes was compared and has a place for the fault "
                    "(--path {}, --layer {}, --plan {})",
                    options_.inject, options_.path, options_.layer, options_.plan);
    if (missed > 0)
        return fail(Code::kInternal, "verify: {} of {} injected faults were not noticed", missed,
                    faults);
    if (injection_)
        fmt::print("\nverdict     all {} faults noticed\n", faults);
    else
        fmt::print(
            "\nverdict     {} launches: codes and integers equal, floats within their bounds\n",
            launches);
    return {};
}

Status Verification::launch_local(verify::Device& device, const engine::StateStore& states) {
    std::vector<verify::LaunchLocal> runs;
    for (std::size_t p = 0; p < plans_of(options_).size(); ++p)
        runs.emplace_back(device, pool_, selection_, injection_);
    for (std::int64_t s = 0; s < session_->steps(); ++s)
        LR_TRY(one_step(device, states, s, runs));
    return judge(runs);
}

Status Verification::free_run(verify::Device& device, const engine::StateStore& states) {
    const auto plans = plans_of(options_);
    if (plans.size() != 1)
        return fail(Code::kInvalidArgument, "--free-run: expected one plan, got --plan all");
    graph::StepOptions exact_options = step_options();
    exact_options.precision = ops::Precision::kF32;
    LR_TRY_ASSIGN(const graph::Step last, build(session_->steps() - 1, exact_options));
    LR_TRY_ASSIGN(const auto exact_states, engine::StateStore::allocate(last));
    verify::FreeRunReport report;
    Progress progress("free run", session_->steps(), "steps");
    for (std::int64_t s = 0; s < session_->steps(); ++s) {
        LR_TRY_ASSIGN(const graph::Step step, build(s, step_options()));
        LR_TRY_ASSIGN(const graph::Step exact, build(s, exact_options));
        LR_TRY_ASSIGN(HostTensors mine, HostTensors::allocate(step, *weights_, states));
        LR_TRY_ASSIGN(HostTensors scratch, HostTensors::allocate(step, *weights_, states));
        LR_TRY_ASSIGN(HostTensors widened, HostTensors::allocate(exact, *weights_, exact_states));
        const verify::StepWork work = session_->work(s);
        const auto ranges = session_->fill(step, work, mine.inputs().data());
        session_->fill(step, work, scratch.inputs().data());
        session_->fill(exact, work, widened.inputs().data());
        LR_TRY(verify::run_reference(step, mine, pool_, nullptr));
        const verify::Routing routing = verify::routing_of(step, mine);
        LR_TRY(verify::run_reference(exact, widened, pool_, &routing));
        LR_TRY_ASSIGN(std::optional<graph::Plan> plan, make_plan(step, plans.front()));
        if (!plan)
            plan = graph::reference_plan(step);
        LR_TRY(device.prepare(step, *plan));
        LR_TRY(verify::run_device(device, step, *plan, scratch, pool_, routing));
        LR_TRY(device.read(step.outputs.logits, scratch.bytes(step.outputs.logits)));
        const ConstView a = mine.view(step.outputs.logits), b = scratch.view(step.outputs.logits);
        const ConstView f32 = widened.view(exact.outputs.logits);
        for (const engine::LogitRange& range : ranges) {
            report.between.add(a, b, range.first, range.count);
            report.reference_cost.add(f32, a, range.first, range.count);
            report.device_cost.add(f32, b, range.first, range.count);
        }
        session_->drew(drawn(step, mine, ranges));
        progress.advance(1);
    }
    fmt::print(
        "\nrouted alike, {} rows of logits: KL mean {:.1e}, worst {:.1e}; other likeliest token in "
        "{}\nagainst f32: reference {:.1e}, device {:.1e} in the mean\n",
        report.between.rows(), report.between.mean(), report.between.worst(),
        report.between.flips(), report.reference_cost.mean(), report.device_cost.mean());
    if (const std::string fault = report.fault(); !fault.empty())
        return fail(Code::kInternal, "verify: {}", fault);
    fmt::print("verdict     only roundings differ\n");
    return {};
}

} // namespace

Status verify_model(const VerifyOptions& options) {
    return Verification(options).execute();
}

} // namespace lr::cli
