// SPDX-License-Identifier: Apache-2.0
//
// liverow graph: a path or a step as a table, a flowchart, JSON or a page.
#include "cli/tools/commands.h"
#include "cli/tools/graph_flags.h"
#include "cli/usage.h"
#include "core/text_file.h"
#include "report/fusions.h"
#include "report/graph_page.h"
#include "report/graph_text.h"
#include "report/traced_fusions.h"
#include "trace/csv.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>

namespace lr::cli {
namespace {

struct Options {
    GraphFlags graph;
    std::string as = "table", trace;
    std::int64_t trace_step = -1; // -1: the trace's first one of the path's phase
    bool shapes = false;
};

std::string rewrite_names() {
    std::string names;
    for (const graph::Rewrite& rewrite : graph::all_rewrites())
        names += fmt::format("{} {}", names.empty() ? ":" : ",", rewrite.name);
    return names;
}

Status show_graph(const Options& options) {
    LR_TRY_ASSIGN(const BuiltGraph built, build_graph(options.graph));
    LR_TRY_ASSIGN(const graph::Plan plan, plan_of(built.step, options.graph.plan));
    LR_TRY_ASSIGN(const report::GraphView view,
                  report::graph_view(built.step, plan, built.machine, built.choice, built.model));
    if (options.as == "mermaid")
        return write_out(options.graph, report::graph_mermaid(view));
    if (options.as == "html")
        return write_out(options.graph, report::graph_page(view));
    if (options.as == "json")
        return write_out(options.graph, to_json_string(report::graph_json(view), 1) + "\n");
    return write_out(options.graph, report::graph_text(view, options.shapes));
}

// The rows of one step of a trace, against the graph that it was made from.
Result<trace::Analysis> read_trace(const Options& options, const graph::Step& step) {
    LR_TRY_ASSIGN(const std::string text, read_text_file(options.trace));
    LR_TRY_ASSIGN(std::vector<trace::Row> rows, trace::parse_csv(text, options.trace));
    const std::string phase = step.shape.phase == graph::Phase::kDecode ? "decode" : "prefill";
    const auto first = std::find_if(rows.begin(), rows.end(), [&](const trace::Row& row) {
        return row.path.starts_with(phase);
    });
    const std::int64_t wanted = options.trace_step >= 0 ? options.trace_step
                                : first != rows.end()   ? first->step
                                                        : rows.front().step;
    std::erase_if(rows, [&](const trace::Row& row) { return row.step != wanted; });
    if (rows.empty())
        return fail(Code::kInvalidArgument, "--trace-step: {} has no step {}", options.trace,
                    wanted);
    LR_TRY_ASSIGN(trace::Analysis analysis, trace::analyse(std::move(rows), step, false));
    if (!analysis.unknown.empty()) {
        const trace::Row& row = analysis.rows[analysis.unknown.front()];
        return fail(Code::kInvalidFile,
                    "{}: step {} layer {}: expected nodes of this graph, got {} {}", options.trace,
                    row.step, row.layer, row.path, row.nodes);
    }
    return analysis;
}

Status show_fusions(const Options& options) {
    LR_TRY_ASSIGN(const BuiltGraph built, build_graph(options.graph));
    LR_TRY_ASSIGN(auto rows, report::find_fusions(built.step, built.machine));
    if (!options.trace.empty()) {
        LR_TRY_ASSIGN(const trace::Analysis analysis, read_trace(options, built.step));
        LR_TRY(report::add_trace(rows, built.step, built.machine, analysis));
    }
    if (options.as == "json")
        return write_out(options.graph,
                         to_json_string(report::fusions_json(rows, built.machine), 1) + "\n");
    const graph::Plan plan = graph::reference_plan(built.step);
    LR_TRY_ASSIGN(const report::GraphView view,
                  report::graph_view(built.step, plan, built.machine, built.choice, built.model));
    return write_out(
        options.graph,
        report::fusions_text(rows, built.machine,
                             fmt::format("{}: {}", built.model, report::describe_shape(view))));
}

// liverow graph fusions: the flags of the step again, since a subcommand's own come after it.
void add_fusions(CLI::App& graph, Action& action) {
    auto options = std::make_shared<Options>();
    CLI::App* command = graph.add_subcommand(
        "fusions", "What each fusion candidate would save, what it must keep, what is in its way");
    command->footer("Example: liverow graph fusions --preset 397B-A17B --tp 2 -n 54");
    add_graph_flags(*command, options->graph);
    {
        const FlagGroup group(*command, kOutputFlags);
        command->add_option("--as", options->as, "table or JSON")
            ->check(CLI::IsMember({"table", "json"}))
            ->capture_default_str();
        command->add_option("--trace", options->trace,
                            "A CSV of `liverow trace` of the same model and shape: what waits for "
                            "each candidate, and the most that it can save");
        command
            ->add_option("--trace-step", options->trace_step,
                         "Which step of the trace; -1: its first one of --path's phase")
            ->check(CLI::Range(std::int64_t{-1}, std::int64_t{1} << 40))
            ->capture_default_str();
    }
    command->callback([&action, &graph, options] {
        action = [&graph, options] {
            const std::vector<CLI::Option*> before = graph.get_options();
            if (std::any_of(before.begin(), before.end(),
                            [](const CLI::Option* flag) { return flag->count() > 0; }))
                return Status(fail(Code::kInvalidArgument,
                                   "graph fusions: MODEL and flags stand after `fusions`"));
            return show_fusions(*options);
        };
    });
}

} // namespace

void add_graph(CLI::App& app, Action& action) {
    auto options = std::make_shared<Options>();
    CLI::App* command = app.add_subcommand(
        "graph", "Show a step: nodes, edges, bytes, FLOPs and the least time they take");
    command->footer("Example: liverow graph --preset 397B-A17B --tp 2 -n 54 --path decode-gdn\n"
                    "         liverow graph models/tiny --as html -o tiny.html");
    add_graph_flags(*command, options->graph);
    {
        const FlagGroup group(*command, kOutputFlags);
        command
            ->add_option("--plan", options->graph.plan,
                         "reference, or rewrites separated by commas" + rewrite_names())
            ->capture_default_str();
        command
            ->add_option("--as", options->as,
                         "table, a Mermaid flowchart, JSON, or one HTML file with a drawing")
            ->check(CLI::IsMember({"table", "mermaid", "json", "html"}))
            ->capture_default_str();
        command->add_flag("--shapes", options->shapes, "Tensors in and out beside each node");
    }
    add_fusions(*command, action);
    command->callback([&action, options] {
        if (!action) // or the subcommand has left its own
            action = [options] { return show_graph(*options); };
    });
}

} // namespace lr::cli
