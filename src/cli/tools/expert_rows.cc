// SPDX-License-Identifier: Apache-2.0
#include "cli/tools/expert_rows.h"

#include "core/json.h"
#include "core/text_file.h"
#include "engine/engine.h"
#include "engine/routing_record.h"
#include "experts/endpoints.h"
#include "experts/problem.h"
#include "model/open.h"
#include "text/tokenizer.h"

#include <algorithm>
#include <charconv>
#include <numeric>

namespace lr::cli {
namespace {

using experts::Load;
using experts::Routing;

constexpr std::int64_t kUsualTokens = 64;

template <typename T> Result<T> parse_number(std::string_view text, std::string_view where) {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || text.empty())
        return fail(Code::kInvalidArgument, "{}: expected a number, got '{}'", where, text);
    return value;
}

Result<std::vector<std::int64_t>> counts_in_json(std::string_view text, std::string_view where) {
    LR_TRY_ASSIGN(const Json json, parse_json(text, where, {.error_code = Code::kInvalidArgument}));
    const JsonCursor cursor(std::string(where), json, Code::kInvalidArgument);
    LR_TRY_ASSIGN(const std::vector<JsonCursor> items, cursor.read_array());
    std::vector<std::int64_t> counts;
    for (const JsonCursor& item : items) {
        LR_TRY_ASSIGN(const std::int64_t count, item.read_int());
        counts.push_back(count);
    }
    return counts;
}

// The rank's own experts of a routing over all of them.
void take_rank(ExpertRows& rows, std::int64_t ranks, std::int64_t rank) {
    const std::int64_t local = rows.routing.local / ranks, first = rank * local;
    for (std::int32_t& id : rows.routing.ids)
        id = id >= first && id < first + local ? static_cast<std::int32_t>(id - first) : -1;
    rows.routing.local = local;
    rows.load = Load(rows.load.begin() + first, rows.load.begin() + first + local);
}

Status check_rank(const RowFlags& flags) {
    if (flags.rank >= flags.ranks)
        return fail(Code::kInvalidArgument, "--rank: expected 0 to {}, got {}", flags.ranks - 1,
                    flags.rank);
    return {};
}

Status check_ranks(const RowFlags& flags, std::int64_t experts) {
    if (experts % flags.ranks != 0)
        return fail(Code::kInvalidArgument, "--ranks: expected a divisor of the {} experts, got {}",
                    experts, flags.ranks);
    return {};
}

// Shares of the tokens, as the load that these rows are one sample of.
Load share_of_tokens(const Routing& routing) {
    Load load;
    for (std::int32_t count : experts::count_rows(routing))
        load.push_back(static_cast<double>(count) /
                       static_cast<double>(std::max<std::int64_t>(routing.tokens(), 1)));
    return load;
}

Result<ExpertRows> given_counts(const RowFlags& flags, std::int64_t block) {
    const bool file = !flags.counts_file.empty();
    const std::string where = file ? flags.counts_file : "--counts";
    std::string text = flags.counts;
    if (file) {
        LR_TRY_ASSIGN(text, read_text_file(flags.counts_file));
    }
    LR_TRY_ASSIGN(const std::vector<std::int64_t> counts, parse_counts(text, where));
    ExpertRows rows{
        .source = where, .counted = true, .top_k = flags.top_k, .capacity = flags.capacity};
    if (rows.capacity == 0 && !counts.empty()) {
        const std::int64_t most = *std::max_element(counts.begin(), counts.end());
        rows.capacity = std::max(
            flags.tokens,
            experts::align_up(std::clamp<std::int64_t>(most, 1, std::int64_t{1} << 31), block));
    }
    // Without K a token may have chosen every expert.
    const std::int64_t per_token = rows.top_k > 0 ? rows.top_k : std::ssize(counts);
    LR_TRY_ASSIGN(rows.routing,
                  routing_of_counts(counts, rows.capacity, flags.tokens, per_token, where));
    rows.load = share_of_tokens(rows.routing);
    return rows;
}

Result<Load> load_of(const std::string& text, std::int64_t experts, std::int64_t per_token) {
    const std::size_t colon = std::min(text.find(':'), text.size());
    const std::string kind = text.substr(0, colon);
    const std::string value = text.substr(std::min(colon + 1, text.size()));
    if (kind == "uniform" && value.empty())
        return experts::uniform_load(experts, per_token);
    if (kind == "measured") {
        LR_TRY_ASSIGN(const std::string file, read_text_file(value));
        LR_TRY_ASSIGN(const std::vector<std::int64_t> counts, parse_counts(file, value));
        LR_TRY_ASSIGN(const std::vector<std::int32_t> checked,
                      experts::check_counts(counts, std::int64_t{1} << 31, value));
        const auto used =
            std::count_if(checked.begin(), checked.end(), [](auto c) { return c > 0; });
        if (std::ssize(checked) != experts || used < per_token)
            return fail(Code::kInvalidArgument,
                        "{}: expected the rows of {} experts, at least {} of them with some, got "
                        "{} and {}",
                        value, experts, per_token, checked.size(), used);
        return experts::measured_load(checked, per_token);
    }
    if (kind == "zipf" || kind == "skew") {
        LR_TRY_ASSIGN(const double number, parse_number<double>(value, "--distribution " + kind));
        const double most = static_cast<double>(experts) / static_cast<double>(per_token);
        const double low = kind == "zipf" ? 0 : 1, high = kind == "zipf" ? 16 : most;
        if (!(number >= low && number <= high))
            return fail(Code::kInvalidArgument,
                        "--distribution {}: expected {:g} to {:g}, got {:g}", kind, low, high,
                        number);
        return kind == "zipf" ? experts::zipf_load(experts, per_token, number)
                              : experts::skewed_load(experts, per_token, number);
    }
    return fail(Code::kInvalidArgument,
                "--distribution: expected uniform, zipf:A, skew:X or measured:FILE, got '{}'",
                text);
}

Result<ExpertRows> drawn(const RowFlags& flags, const model::Config& preset) {
    const std::int64_t count = flags.experts > 0 ? flags.experts : preset.experts;
    const std::int64_t top_k = flags.top_k > 0 ? flags.top_k : preset.experts_per_token;
    const std::int64_t tokens = flags.tokens > 0 ? flags.tokens : kUsualTokens;
    if (count < 1 || top_k < 1 || top_k > count)
        return fail(Code::kInvalidArgument,
                    "--distribution: expected experts, and 1 to all of them for a token, got "
                    "--experts {} and --top-k {}",
                    count, top_k);
    LR_TRY(check_ranks(flags, count));
    ExpertRows rows{
        .source = fmt::format("{} of {} tokens, seed {}", flags.distribution, tokens, flags.seed),
        .top_k = top_k,
        .capacity = flags.capacity > 0 ? flags.capacity : tokens};
    LR_TRY_ASSIGN(rows.load, load_of(flags.distribution, count, top_k));
    rows.routing = experts::draw_routing(rows.load, tokens, top_k, flags.seed);
    take_rank(rows, flags.ranks, flags.rank);
    return rows;
}

Result<std::vector<std::int32_t>> read_tokens(const RowFlags& flags, std::int64_t most) {
    LR_TRY_ASSIGN(const text::Tokenizer tokenizer, text::Tokenizer::load(flags.model));
    LR_TRY_ASSIGN(const std::string text, read_text_input(flags.text, "text"));
    auto ids = tokenizer.encode(text, {.allow_special = true});
    const std::string origin = origin_of(flags.text, "text");
    if (!ids)
        return fail(ids.error().code(), "{}: {}", origin, ids.error().message());
    if (ids->empty())
        return fail(Code::kInvalidArgument, "{}: expected text to route, got no token", origin);
    if (flags.tokens > 0)
        ids->resize(std::min(ids->size(), static_cast<std::size_t>(flags.tokens)));
    if (std::ssize(*ids) > most)
        return fail(Code::kInvalidArgument,
                    "{}: expected at most {} tokens, the model's longest context, got {}; --tokens "
                    "takes the first ones",
                    origin, most, ids->size());
    return std::move(*ids);
}

// One sequence through the model; the record of it.
Result<engine::RoutingRecord> record(const model::OpenModel& opened, int threads,
                                     const std::vector<std::int32_t>& ids) {
    engine::RecordRouting observer;
    engine::EngineOptions options;
    options.threads = threads;
    options.context = std::ssize(ids);
    options.observer = &observer;
    LR_TRY_ASSIGN(const auto engine, engine::Engine::load(opened, options));
    LR_TRY_ASSIGN(const engine::SequenceId sequence, engine->open_sequence());
    for (std::int64_t first = 0; first < std::ssize(ids); first += options.prefill_rows) {
        const std::int64_t end = std::min(first + options.prefill_rows, std::ssize(ids));
        engine::StepInput input{.phase = graph::Phase::kPrefill};
        input.pieces.push_back(
            {.sequence = sequence, .tokens = {ids.begin() + first, ids.begin() + end}});
        LR_TRY_ASSIGN(const engine::Ticket ticket, engine->submit(std::move(input)));
        if (const auto output = engine->wait(ticket); !output)
            return fail(output.error());
    }
    return observer.record();
}

Result<ExpertRows> recorded(const RowFlags& flags) {
    LR_TRY_ASSIGN(const model::OpenModel opened, model::open_model(flags.model));
    const model::Config& config = opened.config();
    if (!config.moe())
        return fail(Code::kInvalidArgument, "{}: expected a model with experts, got a dense one",
                    flags.model);
    const std::int64_t layer = flags.layer;
    if (layer >= config.layer_count())
        return fail(Code::kInvalidArgument, "--layer: expected 0 to {}, got {}",
                    config.layer_count() - 1, layer);
    LR_TRY(check_ranks(flags, config.experts));
    LR_TRY_ASSIGN(const std::vector<std::int32_t> ids, read_tokens(flags, config.max_positions));
    LR_TRY_ASSIGN(const engine::RoutingRecord record, cli::record(opened, flags.threads, ids));
    const auto index = static_cast<std::int32_t>(layer);
    ExpertRows rows{.source = fmt::format("layer {} of {}, {} tokens of {}", layer, flags.model,
                                          record.tokens(index), origin_of(flags.text, "text")),
                    .top_k = config.experts_per_token,
                    .capacity = flags.capacity > 0 ? flags.capacity : record.tokens(index),
                    .config = config};
    rows.routing = {.local = config.experts, .per_token = record.per_token(index), .ids = {}};
    for (std::int64_t token = 0; token < record.tokens(index); ++token) {
        const auto chosen = record.ids(index, token);
        rows.routing.ids.insert(rows.routing.ids.end(), chosen.begin(), chosen.end());
    }
    for (const model::Entry& entry : opened.model().entries())
        if (entry.kind == model::TensorKind::kRouted && entry.layer == layer && !entry.mtp)
            rows.weights = entry.format;
    rows.load = share_of_tokens(rows.routing);
    take_rank(rows, flags.ranks, flags.rank);
    return rows;
}

} // namespace

Result<std::vector<std::int64_t>> parse_counts(std::string_view text, std::string_view where) {
    constexpr std::string_view kBetween = ", \t\r\n";
    const std::size_t begin = std::min(text.find_first_not_of(kBetween), text.size());
    if (begin < text.size() && text[begin] == '[')
        return counts_in_json(text, where);
    std::vector<std::int64_t> counts;
    for (std::size_t at = begin; at < text.size();) {
        const std::size_t end = std::min(text.find_first_of(kBetween, at), text.size());
        LR_TRY_ASSIGN(
            const std::int64_t count,
            parse_number<std::int64_t>(text.substr(at, end - at),
                                       fmt::format("{}: expert {}", where, counts.size())));
        counts.push_back(count);
        at = std::min(text.find_first_not_of(kBetween, end), text.size());
    }
    return counts;
}

Result<Routing> routing_of_counts(const std::vector<std::int64_t>& counts, std::int64_t capacity,
                                  std::int64_t tokens, std::int64_t per_token,
                                  std::string_view where) {
    LR_TRY_ASSIGN(const std::vector<std::int32_t> checked,
                  experts::check_counts(counts, capacity, where));
    const std::int64_t sum = std::accumulate(checked.begin(), checked.end(), std::int64_t{0});
    const std::int64_t most = *std::max_element(checked.begin(), checked.end());
    const std::int64_t needed =
        std::max({tokens, most, (sum + per_token - 1) / per_token, std::int64_t{1}});
    if (needed > capacity)
        return fail(Code::kInvalidArgument,
                    "{}: expected rows that at most {} tokens (the capacity) of {} choices make, "
                    "got {} rows, which need {} tokens",
                    where, capacity, per_token, sum, needed);
    if (needed * per_token > experts::kMaxDescribed)
        return fail(Code::kInvalidArgument,
                    "{}: expected at most {} choices to describe, got {} tokens of {}", where,
                    experts::kMaxDescribed, needed, per_token);
    return experts::deal_routing(checked, needed, per_token);
}

Result<ExpertRows> read_expert_rows(const RowFlags& flags, const model::Config& preset,
                                    std::int64_t block) {
    const std::pair<const char*, const std::string*> sources[] = {
        {"--counts", &flags.counts},
        {"--counts-file", &flags.counts_file},
        {"--distribution", &flags.distribution},
        {"--model", &flags.model}};
    std::vector<std::string> given;
    for (const auto& [name, value] : sources)
        if (!value->empty())
            given.push_back(name);
    if (given.size() != 1)
        return fail(Code::kInvalidArgument,
                    "rows: expected one of --counts, --counts-file, --distribution and --model, "
                    "got {}",
                    given.empty() ? "none" : fmt::format("{}", fmt::join(given, " and ")));
    LR_TRY(check_rank(flags));
    if (!flags.model.empty())
        return recorded(flags);
    if (!flags.distribution.empty())
        return drawn(flags, preset);
    return given_counts(flags, block);
}

} // namespace lr::cli
