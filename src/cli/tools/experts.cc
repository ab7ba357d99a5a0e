// SPDX-License-Identifier: Apache-2.0
//
// liverow experts: the rows, tiles, programs and bytes of routed experts.
#include "cli/tools/commands.h"
#include "cli/tools/expert_rows.h"
#include "cli/tools/graph_flags.h"
#include "cli/usage.h"
#include "experts/endpoints.h"
#include "model/presets.h"
#include "report/experts_report.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <memory>

namespace lr::cli {
namespace {

using namespace experts;

struct Options {
    RowFlags rows;
    std::string preset = "35B-A3B", layout = "expert-major", format, order = "auto";
    std::int64_t hidden = 0, width = 0, align = 128, ctas = 132, rank_tokens = 0;
    Tiling tiling;
    std::string split, next, sweep, tpot;
    std::vector<std::string> elements;
    std::string machine = "h200";
    std::optional<double> gbs, tflops, launch_us; // instead of the machine's
    std::string as = "table";
    std::int64_t top = 32;
};

// "65,129,130" into exactly three numbers.
template <typename T>
Result<std::array<T, 3>> parse_three(std::string_view text, std::string_view flag) {
    std::array<T, 3> values{};
    const char *at = text.data(), *end = text.data() + text.size();
    for (std::size_t i = 0; i < values.size(); ++i) {
        const auto [next, error] = std::from_chars(at, end, values[i]);
        const bool last = i + 1 == values.size();
        if (error != std::errc() || (last ? next != end : next == end || *next != ','))
            return fail(Code::kInvalidArgument, "{}: expected three numbers A,B,C, got '{}'", flag,
                        text);
        at = last ? next : next + 1;
    }
    return values;
}

Result<report::Sweep> parse_sweep(std::string_view text) {
    const std::size_t equals = std::min(text.find('='), text.size());
    report::Sweep sweep{.key = std::string(text.substr(0, equals)), .values = {}};
    constexpr std::string_view kKeys[] = {"bm", "bn", "ctas", "align"};
    if (std::find(std::begin(kKeys), std::end(kKeys), sweep.key) == std::end(kKeys))
        return fail(Code::kInvalidArgument,
                    "--sweep: expected bm=, bn=, ctas= or align= and values, got '{}'", text);
    LR_TRY_ASSIGN(sweep.values,
                  parse_counts(text.substr(std::min(equals + 1, text.size())), "--sweep"));
    if (sweep.values.empty())
        return fail(Code::kInvalidArgument, "--sweep: expected values after '{}=', got none",
                    sweep.key);
    return sweep;
}

// A flag's figure, or else the machine's; neither NaN nor infinite.
Result<double> figure(const std::optional<double>& given, double known, double least,
                      std::string_view flag) {
    const double value = given.value_or(known);
    if (value >= least && value <= 1e9)
        return value;
    return fail(Code::kInvalidArgument, "{}: expected {:g} to 1e9, got {:g}", flag, least, value);
}

// What multiplies: units of the activations' format (docs/EXPERTS.md: FP8 weights have FP8 ones).
graph::Unit unit_of(numerics::WeightFormat weights) {
    return weights == numerics::WeightFormat::kPlain || weights == numerics::WeightFormat::kNvfp4
               ? graph::Unit::kBf16
               : graph::Unit::kFp8;
}

class Experts {
  public:
    explicit Experts(const Options& options) : options_(options) {}

    Status execute() {
        LR_TRY_ASSIGN(const model::Config preset, model::preset(options_.preset));
        LR_TRY_ASSIGN(rows_, read_expert_rows(options_.rows, preset, options_.tiling.rows));
        LR_TRY(make_problem(rows_.config ? *rows_.config : preset));
        LR_TRY(read_questions());
        LR_TRY_ASSIGN(const std::vector<report::Section> sections,
                      report::experts_sections(input_));
        const std::string text = options_.as == "json"   ? report::experts_json(input_, sections)
                                 : options_.as == "html" ? report::experts_html(input_, sections)
                                                         : report::experts_text(input_, sections);
        std::fwrite(text.data(), 1, text.size(), stdout);
        return {};
    }

  private:
    Status make_problem(const model::Config& config) {
        Problem& p = input_.problem;
        p.routing = rows_.routing;
        p.layout = layout_from_name(options_.layout).value();
        p.capacity = rows_.capacity;
        p.ranks = options_.rows.ranks;
        p.alignment = options_.align;
        p.hidden = options_.hidden > 0 ? options_.hidden : config.hidden;
        p.width = options_.width > 0 ? options_.width : config.expert_width;
        p.tiling = options_.tiling;
        p.ctas = options_.ctas;
        p.weights = options_.format.empty()
                        ? rows_.weights.value_or(numerics::WeightFormat::kFp8Block)
                        : numerics::weight_format_from_name(options_.format).value();
        if (p.width < 1)
            return fail(Code::kInvalidArgument, "width: preset {} has no experts; expected --width",
                        options_.preset);
        LR_TRY(check(p)); // sizes, before they say how long the list is
        if (options_.order == "small-batch" ||
            (options_.order == "auto" && uses_index_list(p.layout) &&
             small_batch_order(std::ssize(listed_ids(p)), p.local())))
            p.order = RowOrder::kSmallBatch;
        return check(p);
    }

    Status read_questions() {
        input_.source = rows_.source;
        input_.load = rows_.load;
        input_.top_k = rows_.top_k;
        LR_TRY(read_machine());
        input_.top = options_.top;
        LR_TRY(read_rank_tokens());
        if (!options_.next.empty()) {
            LR_TRY_ASSIGN(input_.next, other_rows(options_.next, "--next", tokens()));
        }
        if (!options_.split.empty())
            LR_TRY(read_split());
        if (!options_.tpot.empty()) {
            LR_TRY_ASSIGN(const auto ms, parse_three<double>(options_.tpot, "--tpot"));
            if (!std::all_of(ms.begin(), ms.end(), [](double t) { return t > 0 && t <= 1e9; }))
                return fail(Code::kInvalidArgument,
                            "--tpot: expected three times above 0, at most 1e9, got {}",
                            options_.tpot);
            input_.times = SplitTimes{ms[0], ms[1], ms[2]};
        }
        if (!options_.sweep.empty()) {
            LR_TRY_ASSIGN(input_.sweep, parse_sweep(options_.sweep));
        }
        for (const std::string& text : options_.elements) {
            LR_TRY_ASSIGN(const auto at, parse_three<std::int64_t>(text, "--element"));
            input_.elements.push_back({at[0], at[1], at[2]});
        }
        return {};
    }

    Status read_machine() {
        LR_TRY_ASSIGN(const graph::Machine machine, find_machine(options_.machine));
        const double rate = machine.rate_tflops(unit_of(input_.problem.weights));
        LR_TRY_ASSIGN(const double gbs, figure(options_.gbs, machine.read.value, 1e-6, "--gbs"));
        LR_TRY_ASSIGN(const double tflops, figure(options_.tflops, rate, 1e-6, "--tflops"));
        LR_TRY_ASSIGN(const double launch_us,
                      figure(options_.launch_us, machine.launch.value, 0, "--launch-us"));
        input_.machine = {1e9 * gbs, 1e12 * tflops};
        input_.launch_seconds = 1e-6 * launch_us;
        return {};
    }

    // b bounds what arrives, so no more may have arrived.
    Status read_rank_tokens() {
        input_.rank_tokens = options_.rank_tokens;
        if (input_.rank_tokens == 0 || input_.top_k == 0)
            return {};
        const std::int64_t bound =
            tight_rows(input_.problem.ranks, input_.rank_tokens, input_.top_k);
        const auto& ids = input_.problem.routing.ids;
        const std::int64_t live = std::ssize(ids) - std::count(ids.begin(), ids.end(), -1);
        if (live <= bound)
            return {};
        return fail(Code::kInvalidArgument,
                    "--rank-tokens: expected a bound of every rank's tokens, got {}, which lets {} "
                    "ranks of {} choices send {} rows; {} came",
                    input_.rank_tokens, input_.problem.ranks, input_.top_k, bound, live);
    }

    std::int64_t tokens() const { return input_.problem.routing.tokens(); }

    Result<Routing> other_rows(const std::string& text, std::string_view where,
                               std::int64_t tokens) const {
        LR_TRY_ASSIGN(const std::vector<std::int64_t> counts, parse_counts(text, where));
        if (std::ssize(counts) != input_.problem.local())
            return fail(Code::kInvalidArgument, "{}: expected the rows of {} experts, got {}",
                        where, input_.problem.local(), counts.size());
        return routing_of_counts(counts, input_.problem.capacity, tokens,
                                 input_.problem.routing.per_token, where);
    }

    Status read_split() {
        const Routing& whole = input_.problem.routing;
        const std::int64_t half = (tokens() + 1) / 2;
        if (options_.split == "even" && !rows_.counted) {
            input_.halves.emplace(slice_tokens(whole, 0, half),
                                  slice_tokens(whole, half, tokens()));
            return {};
        }
        if (options_.split == "even")
            return halve_counts(half);
        const std::size_t slash = options_.split.find('/');
        if (slash == std::string::npos)
            return fail(Code::kInvalidArgument,
                        "--split: expected even, or two lists of rows A,B/C,D, got '{}'",
                        options_.split);
        LR_TRY_ASSIGN(Routing first, other_rows(options_.split.substr(0, slash), "--split", half));
        LR_TRY_ASSIGN(Routing second,
                      other_rows(options_.split.substr(slash + 1), "--split", tokens() - half));
        input_.halves.emplace(std::move(first), std::move(second));
        return {};
    }

    // Whose tokens are not known: half of each expert's rows, the odd one to the first half.
    Status halve_counts(std::int64_t tokens) {
        std::vector<std::int64_t> first, second;
        for (std::int32_t count : count_rows(input_.problem.routing)) {
            first.push_back((count + 1) / 2);
            second.push_back(count / 2);
        }
        const std::int64_t capacity = input_.problem.capacity,
                           per_token = input_.problem.routing.per_token;
        LR_TRY_ASSIGN(Routing one,
                      routing_of_counts(first, capacity, tokens, per_token, "--split"));
        LR_TRY_ASSIGN(Routing two,
                      routing_of_counts(second, capacity, tokens, per_token, "--split"));
        input_.halves.emplace(std::move(one), std::move(two));
        return {};
    }

    const Options& options_;
    ExpertRows rows_;
    report::ExpertsInput input_;
};

void add_row_flags(CLI::App& command, RowFlags& flags) {
    const FlagGroup group(command, "Rows");
    command.add_option("--counts", flags.counts, "Live rows of each expert: 70,12")
        ->type_name("LIST");
    command.add_option("--counts-file", flags.counts_file, "The same in a file, or a JSON array")
        ->type_name("FILE");
    command
        .add_option("--distribution", flags.distribution,
                    "Draw them: uniform; zipf:A, weights (e + 1)^-A; skew:X, the busiest expert "
                    "has X times the mean, as measured; measured:FILE, in proportion to counts")
        ->type_name("HOW");
    command.add_option("--model", flags.model, "Run this model over a text and record its routing")
        ->type_name("FOLDER");
    CLI::Option* text = command
                            .add_option_function<std::string>(
                                "-p,--prompt",
                                [&flags](const std::string& given) {
                                    flags.text.text = given;
                                    flags.text.has_text = true;
                                },
                                "The text")
                            ->type_name("TEXT");
    command.add_option("-f,--file", flags.text.file, "The text's file; else standard input")
        ->type_name("FILE")
        ->excludes(text);
    command.add_option("--layer", flags.layer, "Layer of the model")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    command.add_option("--threads", flags.threads, "Of the run; 0: one for each processor")
        ->check(CLI::Range(0, 4096))
        ->capture_default_str();
}

void add_batch_flags(CLI::App& command, RowFlags& flags) {
    const FlagGroup group(command, "Batch");
    command.add_option("--tokens", flags.tokens, "Tokens; of a text the first N")
        ->check(CLI::Range(1, 1 << 22))
        ->type_name("N");
    command.add_option("--experts", flags.experts, "Experts of the model, for a distribution")
        ->check(CLI::Range(1, 8191))
        ->type_name("E");
    command.add_option("--top-k", flags.top_k, "Experts that a token chooses")
        ->check(CLI::Range(1, 8191))
        ->type_name("K");
    command.add_option("--capacity", flags.capacity, "Rows that an expert can have")
        ->check(CLI::Range(std::int64_t{1}, (std::int64_t{1} << 31) - 1))
        ->type_name("R");
    command.add_option("--ranks", flags.ranks, "Ranks that divide the experts")
        ->check(CLI::Range(1, 4096))
        ->capture_default_str()
        ->type_name("P");
    command.add_option("--rank", flags.rank, "The rank that is described")
        ->check(CLI::Range(0, 4095))
        ->capture_default_str()
        ->type_name("r");
    command.add_option("--seed", flags.seed, "Of a distribution")->capture_default_str();
}

void add_shape_flags(CLI::App& command, Options& options) {
    const FlagGroup group(command, "Shape and tiles");
    command.add_option("--preset", options.preset, "Sizes that are not given are this model's")
        ->capture_default_str();
    command.add_option("--hidden", options.hidden, "Hidden size")
        ->check(CLI::Range(1, 1 << 20))
        ->type_name("D");
    command.add_option("--width", options.width, "Expert width")
        ->check(CLI::Range(1, 1 << 20))
        ->type_name("I");
    std::vector<std::string> formats;
    for (auto format : {numerics::WeightFormat::kPlain, numerics::WeightFormat::kFp8Block,
                        numerics::WeightFormat::kFp8Channel, numerics::WeightFormat::kFp8Tensor,
                        numerics::WeightFormat::kNvfp4})
        formats.emplace_back(numerics::weight_format_name(format));
    command.add_option("--format", options.format, "Weight format [fp8-block, or that of --model]")
        ->check(CLI::IsMember(formats));
    std::vector<std::string> layouts;
    for (Layout layout : kLayouts)
        layouts.emplace_back(layout_name(layout));
    command.add_option("--layout", options.layout, "How the rows lie")
        ->check(CLI::IsMember(layouts))
        ->capture_default_str();
    command
        .add_option("--order", options.order,
                    "Rows of an index list: small-batch as the traced kernel, where it has an "
                    "order; auto: where it has one")
        ->check(CLI::IsMember({"auto", "ascending", "small-batch"}))
        ->capture_default_str();
    const std::tuple<const char*, std::int64_t*, const char*> sizes[] = {
        {"--align", &options.align, "Row alignment of endpoints and aligned-end"},
        {"--bm", &options.tiling.rows, "Rows of a tile"},
        {"--bn", &options.tiling.columns, "Columns of a tile"},
        {"--bk", &options.tiling.depth, "Features of one step along the sum"},
        {"--group-m", &options.tiling.group, "Row blocks that stand together in program numbers"},
        {"--ctas", &options.ctas, "Persistent CTAs, or tiles that run at once (H200: 132)"}};
    for (const auto& [name, value, text] : sizes)
        command.add_option(name, *value, text)
            ->check(CLI::Range(1, 1 << 20)) // experts::check has limits of its own
            ->capture_default_str()
            ->type_name("N");
}

void add_question_flags(CLI::App& command, Options& options) {
    const FlagGroup group(command, "Questions");
    command
        .add_option("--split", options.split,
                    "Compare with two halves: even, or their rows "
                    "35,6/35,6")
        ->type_name("HALVES");
    command.add_option("--next", options.next, "Replay the launch with these rows: 64,0")
        ->type_name("LIST");
    command.add_option("--sweep", options.sweep, "bm=8,16,32,64; also bn=, ctas=, align=")
        ->type_name("VALUES");
    command
        .add_option("--element", options.elements,
                    "Follow the product of row q, column n, feature k: 65,129,130")
        ->type_name("Q,N,K")
        ->take_all();
    command
        .add_option("--rank-tokens", options.rank_tokens,
                    "Tokens that any rank can send, for the tight capacity")
        ->check(CLI::Range(1, 1 << 24))
        ->type_name("b");
    command
        .add_option("--tpot", options.tpot,
                    "Milliseconds a token measured whole, split, overlapped: 102.1,153.67,150.78")
        ->type_name("A,B,C");
    command
        .add_option("--machine", options.machine,
                    "Whose floor: h200, b300, cpu (this one, measured now) or a JSON file, as in "
                    "`graph`")
        ->capture_default_str();
    command.add_option("--gbs", options.gbs, "Memory of the floor, GB/s, instead of the machine's")
        ->type_name("X");
    command
        .add_option("--tflops", options.tflops,
                    "Arithmetic of the floor, TFLOP/s, instead of the machine's")
        ->type_name("X");
    command
        .add_option("--launch-us", options.launch_us,
                    "What one more launch costs, microseconds, instead of the machine's")
        ->type_name("X");
}

} // namespace

void add_experts(CLI::App& app, Action& action) {
    auto options = std::make_shared<Options>();
    CLI::App* command =
        app.add_subcommand("experts", "Show rows, tiles, programs and bytes of routed experts");
    add_row_flags(*command, options->rows);
    add_batch_flags(*command, options->rows);
    add_shape_flags(*command, *options);
    add_question_flags(*command, *options);
    {
        const FlagGroup group(*command, kOutputFlags);
        command->add_option("--as", options->as, "What to write")
            ->check(CLI::IsMember({"table", "json", "html"}))
            ->capture_default_str();
        command->add_option("--top", options->top, "Experts, blocks and CTAs of a table; 0: all")
            ->check(CLI::Range(0, 1 << 24))
            ->capture_default_str();
    }
    command->footer(
        "Examples: liverow experts --counts 70,12 --capacity 128 --hidden 256 --width 128 \\\n"
        "              --split 35,6/35,6 --sweep bm=8,16,32,64 --ctas 2\n"
        "          liverow experts --distribution zipf:0.8 --preset 35B-A3B --tokens 64 \\\n"
        "              --layout endpoints --split even --as html > experts.html\n"
        "          liverow experts --model models/tiny -f README.md --tokens 256 --bm 16");
    command->callback(
        [&action, options] { action = [options] { return Experts(*options).execute(); }; });
}

} // namespace lr::cli
