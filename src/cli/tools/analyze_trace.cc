// SPDX-License-Identifier: Apache-2.0
#include "cli/tools/trace_runs.h"
#include "core/log.h"
#include "core/text_file.h"
#include "model/open.h"
#include "model/presets.h"
#include "report/timeline.h"
#include "report/trace_tables.h"
#include "trace/csv.h"
#include "trace/nsys.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>

namespace lr::cli {
namespace {

using trace::Row;

Result<std::vector<Row>> read_rows(const AnalyzeOptions& options) {
    LR_TRY_ASSIGN(const std::string text, read_text_file(options.file));
    if (!trace::is_nsys(text)) {
        if (!options.rules.empty())
            return fail(Code::kInvalidArgument,
                        "--rules: {} names its nodes itself; rules are for kernels of nsys",
                        options.file);
        return trace::parse_csv(text, options.file);
    }
    if (options.rules.empty())
        return fail(
            Code::kInvalidArgument,
            "{}: kernels of nsys: expected --rules FILE that says which node each is, such as "
            "tools/nsys/sglang.rules",
            options.file);
    LR_TRY_ASSIGN(const std::string rules_text, read_text_file(options.rules));
    LR_TRY_ASSIGN(const auto rules, trace::parse_rules(rules_text, options.rules));
    LR_TRY_ASSIGN(trace::NsysTrace found, trace::parse_nsys(text, options.file, rules));
    for (const auto& [name, count] : found.unnamed)
        fmt::print("no rule     {} x {}\n", count, name.substr(0, 120));
    if (found.rows.empty())
        return fail(Code::kInvalidArgument, "{}: expected rules that fit a kernel of {}, got none",
                    options.rules, options.file);
    return std::move(found.rows);
}

bool is_prefill(const std::vector<Row>& rows) {
    return std::any_of(rows.begin(), rows.end(),
                       [](const Row& row) { return row.path.starts_with("prefill"); });
}

// The rows of the step that was asked for, or of the one whose span is the median.
Result<std::vector<Row>> choose(const std::vector<Row>& rows, const AnalyzeOptions& options) {
    std::map<std::int64_t, std::vector<Row>> steps;
    for (const Row& row : rows)
        if (options.layer < 0 || row.layer == options.layer)
            steps[row.step].push_back(row);
    if (steps.empty())
        return fail(Code::kInvalidArgument, "{}: expected launches of --layer {}, got none",
                    options.file, options.layer);
    if (steps.size() > 1) {
        report::Table table("Steps (us)", {{"step", report::Align::kLeft},
                                           {"phase", report::Align::kLeft},
                                           {"launches"},
                                           {"sum"},
                                           {"span"},
                                           {"overlap"}});
        for (const auto& [number, of_step] : steps) {
            const trace::Totals totals = trace::totals_of(of_step);
            table.add({fmt::format("{}", number), is_prefill(of_step) ? "prefill" : "decode",
                       fmt::format("{}", of_step.size()), fmt::format("{:.3f}", totals.sum),
                       fmt::format("{:.3f}", totals.span),
                       fmt::format("{:.3f}", totals.overlap())});
        }
        fmt::print("{}\n", report::table_text(table));
    }
    if (options.step >= 0) {
        const auto found = steps.find(options.step);
        if (found == steps.end())
            return fail(Code::kInvalidArgument, "--step: expected {}..{}, got {}",
                        steps.begin()->first, steps.rbegin()->first, options.step);
        return found->second;
    }
    // Of decode steps where there are any.
    const bool any_decode = std::any_of(steps.begin(), steps.end(),
                                        [](const auto& step) { return !is_prefill(step.second); });
    std::vector<std::pair<double, std::int64_t>> spans;
    for (const auto& [number, of_step] : steps)
        if (!any_decode || !is_prefill(of_step))
            spans.emplace_back(trace::totals_of(of_step).span, number);
    std::sort(spans.begin(), spans.end());
    return steps[spans[spans.size() / 2].second];
}

Result<graph::Step> graph_of(const AnalyzeOptions& options, bool prefill) {
    const graph::StepShape shape{.phase = prefill ? graph::Phase::kPrefill : graph::Phase::kDecode,
                                 .rows = prefill ? 64 : 1,
                                 .sequences = 1,
                                 .logit_rows = 1,
                                 .context = 64,
                                 .slots = 1,
                                 .kv_pages = 1};
    const model::Shard shard{.tp = options.tp};
    if (!options.model.empty()) {
        LR_TRY_ASSIGN(const model::OpenModel opened, model::open_model(options.model));
        return graph::build_step(opened.model(), shard, shape);
    }
    LR_TRY_ASSIGN(const model::Config config, model::preset(options.preset));
    LR_TRY_ASSIGN(const model::FormatPolicy policy,
                  model::format_policy(options.format.empty() ? "nvfp4-mixed" : options.format));
    graph::StepOptions step_options;
    step_options.w4a4 = true;
    model::Model model = model::Model::declare(config, policy);
    for (model::Entry& entry : model.entries()) // the traced kernels quantise FP4 activations
        if (entry.format == model::WeightFormat::kNvfp4)
            entry.input_scale = 1.0f;
    return graph::build_step(model, shard, shape, step_options);
}

// Rows that name layers that the graph has, with their kinds, lie there; others are laid on layers
// of their kind.
bool needs_laying(const std::vector<Row>& rows, const graph::Step& step) {
    for (const Row& row : rows) {
        if (row.layer < 0)
            continue;
        if (static_cast<std::size_t>(row.layer) >= step.layers.size())
            return true;
        const bool gdn = step.layers[static_cast<std::size_t>(row.layer)] == model::LayerKind::kGdn;
        if (row.path.ends_with("-gdn") != gdn)
            return true;
    }
    return false;
}

// Said, not refused: a trace may be cut.
void warn_of_untraced(const trace::Analysis& analysis, const graph::Step& step,
                      const std::string& model) {
    constexpr std::size_t kShown = 6;
    std::string names;
    for (std::size_t i = 0; i < std::min(kShown, analysis.untraced.size()); ++i)
        names += fmt::format("{}{}", i == 0 ? "" : ", ",
                             step.nodes[static_cast<std::size_t>(analysis.untraced[i])].id);
    if (!analysis.untraced.empty())
        log_warning("{} launches of {}'s graph are not in the trace ({}{}): did another model, "
                    "format or --tp run?",
                    analysis.untraced.size(), model, names,
                    analysis.untraced.size() > kShown ? ", ..." : "");
}

} // namespace

Status analyze_trace(const AnalyzeOptions& options) {
    if (options.model.empty() && options.preset.empty())
        return fail(Code::kInvalidArgument,
                    "trace analyze: expected --model FOLDER or --preset, whose graph says who "
                    "waits for whom");
    LR_TRY_ASSIGN(const std::vector<Row> rows, read_rows(options));
    LR_TRY_ASSIGN(std::vector<Row> step_rows, choose(rows, options));
    const std::int64_t number = step_rows.front().step;
    LR_TRY_ASSIGN(const graph::Step step, graph_of(options, is_prefill(step_rows)));
    const bool lay = needs_laying(step_rows, step);
    LR_TRY_ASSIGN(const trace::Analysis analysis, trace::analyse(std::move(step_rows), step, lay));
    if (!analysis.unknown.empty())
        return fail(Code::kInvalidArgument,
                    "{}: {}: expected a node of {} (--model, --preset, --format)", options.file,
                    trace::label(analysis.rows[analysis.unknown.front()]),
                    options.model.empty() ? options.preset : options.model);
    warn_of_untraced(analysis, step, options.model.empty() ? options.preset : options.model);
    fmt::print("trace       {}, step {}; graph of {}\n", options.file, number,
               options.model.empty() ? options.preset : options.model);
    for (const auto& [name, value] : report::trace_facts(analysis))
        fmt::print("  {:<24} {}\n", name, value);
    fmt::print("\n{}\n{}\n", report::table_text(report::node_table(analysis)),
               report::table_text(report::join_table(analysis)));
    if (analysis.rows.size() <= 60)
        fmt::print("{}\n", report::table_text(report::path_table(analysis)));
    fmt::print("{}  (at most: each fused launch as long as its longest member, all else as traced; "
               "fusions overlap, so their figures do not add up)\n",
               report::table_text(report::what_if_table(analysis)));
    if (options.html.empty())
        return {};
    std::ofstream file(options.html, std::ios::binary);
    file << report::timeline_page(analysis, fmt::format("{}, step {}", options.file, number),
                                  "Times as recorded; the graph says which launches need which.");
    file.close();
    if (!file)
        return fail(Code::kInvalidArgument, "--html {}: cannot be written", options.html);
    return {};
}

} // namespace lr::cli
