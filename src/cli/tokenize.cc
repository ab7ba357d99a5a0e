// SPDX-License-Identifier: Apache-2.0
//
// liverow tokenize: text to token ids and back.
#include "cli/commands.h"
#include "cli/logprob_line.h"
#include "cli/text_input.h"
#include "core/json.h"
#include "core/log.h"
#include "text/tokenizer.h"
#include "text/unicode.h"

#include <CLI/CLI.hpp>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <memory>

namespace lr::cli {
namespace {

using text::Tokenizer;
using Ids = std::vector<std::int32_t>;

struct Options {
    std::string model, decode;
    TextInput input;
    bool special = false, ids = false, json = false, count = false, batch = false;
    bool has_decode = false;
};

class Kinds {
  public:
    explicit Kinds(const Tokenizer& tokenizer)
        : added_(static_cast<std::size_t>(tokenizer.vocab_size())), tokenizer_(tokenizer) {
        for (const text::AddedToken& token : tokenizer.added_tokens())
            added_[static_cast<std::size_t>(token.id)] = true;
    }
    std::string_view operator()(std::int32_t id) const {
        if (tokenizer_.is_special(id))
            return "control";
        return added_[static_cast<std::size_t>(id)] ? "added" : "";
    }

  private:
    std::vector<bool> added_;
    const Tokenizer& tokenizer_;
};

void print_table(const Tokenizer& tokenizer, const Ids& ids, std::size_t bytes) {
    const Kinds kind_of(tokenizer);
    fmt::print("{:>6}  {:>7}  {:<7}  {}\n", "place", "id", "kind", "text");
    for (std::size_t i = 0; i < ids.size(); ++i)
        fmt::print("{:>6}  {:>7}  {:<7}  {}\n", i, ids[i], kind_of(ids[i]),
                   quoted(tokenizer.token_bytes(ids[i])));
    fmt::print("{} tokens, {} bytes", ids.size(), bytes);
    if (!ids.empty())
        fmt::print(", {:.2f} bytes a token",
                   static_cast<double>(bytes) / static_cast<double>(ids.size()));
    fmt::print("\n");
}

Json json_of(const Ids& ids) {
    JsonArray array;
    for (std::int32_t id : ids)
        array.emplace_back(std::int64_t{id});
    return Json(std::move(array));
}

void print_json(const Tokenizer& tokenizer, const Ids& ids, std::size_t bytes) {
    JsonArray pieces;
    for (std::int32_t id : ids) {
        JsonArray values;
        for (char c : tokenizer.token_bytes(id))
            values.emplace_back(int{static_cast<unsigned char>(c)});
        pieces.push_back(
            Json::object({{"id", Json(std::int64_t{id})},
                          {"text", Json(text::replace_invalid_utf8(tokenizer.token_bytes(id)))},
                          {"bytes", Json(std::move(values))},
                          {"special", Json(tokenizer.is_special(id))}}));
    }
    fmt::print("{}\n",
               to_json_string(Json::object({{"count", Json(static_cast<std::int64_t>(ids.size()))},
                                            {"bytes", Json(static_cast<std::int64_t>(bytes))},
                                            {"ids", json_of(ids)},
                                            {"tokens", Json(std::move(pieces))}})));
}

Status check_ids(const Tokenizer& tokenizer, const Ids& ids, std::string_view where) {
    for (std::size_t i = 0; i < ids.size(); ++i)
        if (ids[i] < 0 || ids[i] >= tokenizer.vocab_size())
            return fail(Code::kInvalidArgument, "{}: token {}: expected an id in 0..{}, got {}",
                        where, i, tokenizer.vocab_size() - 1, ids[i]);
    return {};
}

// A busy machine does not make the tokenizer look slow.
double processor_seconds() {
    return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

// Lines of JSON: a string is encoded to an array of ids, an array of ids decoded to a string.
class Batch {
  public:
    Batch(const Tokenizer& tokenizer, bool special) : tokenizer_(tokenizer), special_(special) {}

    Status run(std::string_view lines) {
        for (const TextLine& line : lines_of(lines)) {
            LR_TRY(run_line(line.text, fmt::format("line {}", line.number)));
            ++lines_;
        }
        log_info("{} lines, {} bytes, {} tokens, {:.3f} s of processor time, {:.1f} MB/s", lines_,
                 bytes_, tokens_, seconds_,
                 seconds_ > 0 ? static_cast<double>(bytes_) / 1e6 / seconds_ : 0.0);
        return {};
    }

  private:
    Status run_line(std::string_view line, const std::string& where) {
        LR_TRY_ASSIGN(const Json value,
                      parse_json(line, where, {.error_code = Code::kInvalidArgument}));
        const double start = processor_seconds();
        Result<std::string> answer =
            value.is_string() ? encode(value.as_string(), where) : decode(value, where);
        if (!answer)
            return fail(answer.error());
        seconds_ += processor_seconds() - start;
        fmt::print("{}\n", *answer);
        return {};
    }

    Result<std::string> encode(const std::string& text, std::string_view where) {
        const Result<Ids> ids = tokenizer_.encode(text, {.allow_special = special_});
        if (!ids)
            return fail(ids.error().code(), "{}: {}", where, ids.error().message());
        count(text.size(), ids->size());
        return fmt::format("[{}]", fmt::join(*ids, ","));
    }

    Result<std::string> decode(const Json& value, const std::string& where) {
        const JsonCursor cursor(where, value, Code::kInvalidArgument);
        if (!value.is_array())
            return cursor.fail_expected("a string or an array of ids");
        Ids ids;
        LR_TRY_ASSIGN(const std::vector<JsonCursor> items, cursor.read_array());
        for (const JsonCursor& item : items) {
            LR_TRY_ASSIGN(const std::int64_t id, item.read_int(0, tokenizer_.vocab_size() - 1));
            ids.push_back(static_cast<std::int32_t>(id));
        }
        const std::string text = tokenizer_.decode(ids, !special_);
        count(text.size(), ids.size());
        return json_quote(text);
    }

    void count(std::size_t bytes, std::size_t tokens) {
        bytes_ += bytes;
        tokens_ += tokens;
    }

    const Tokenizer& tokenizer_;
    bool special_;
    std::size_t lines_ = 0, bytes_ = 0, tokens_ = 0;
    double seconds_ = 0;
};

Status tokenize(const Options& options) {
    LR_TRY_ASSIGN(const Tokenizer tokenizer, Tokenizer::load(options.model));
    if (options.has_decode) {
        LR_TRY_ASSIGN(const Ids ids, parse_ids(options.decode, "--decode"));
        LR_TRY(check_ids(tokenizer, ids, "--decode"));
        fmt::print("{}\n", tokenizer.decode(ids, !options.special));
        return {};
    }
    LR_TRY_ASSIGN(const std::string text, read_text_input(options.input, "text"));
    if (options.batch)
        return Batch(tokenizer, options.special).run(text);
    LR_TRY_ASSIGN(const Ids ids, tokenizer.encode(text, {.allow_special = options.special}));
    if (options.ids)
        fmt::print("{}\n", fmt::join(ids, ","));
    else if (options.count)
        fmt::print("{}\n", ids.size());
    else if (options.json)
        print_json(tokenizer, ids, text.size());
    else
        print_table(tokenizer, ids, text.size());
    return {};
}

} // namespace

void add_tokenize(CLI::App& app, Action& action) {
    auto options = std::make_shared<Options>();
    CLI::App* command =
        app.add_subcommand("tokenize", "Turn text into token ids, or ids into text");
    command->add_option("MODEL", options->model, "Model folder, or a tokenizer.json")->required();
    auto* text = command->add_option("-p,--prompt", options->input.text, "The text");
    auto* file = command->add_option("-f,--file", options->input.file, "Read the text from a file")
                     ->type_name("FILE");
    auto* decode = command->add_option("--decode", options->decode, "Ids to turn into text")
                       ->type_name("1,2,3");
    text->excludes(file)->excludes(decode);
    file->excludes(decode);
    command->add_flag("--special", options->special,
                      "Read control tokens such as <|im_start|> in the text; show them in decoded "
                      "text");
    auto* ids = command->add_flag("--ids", options->ids, "Print the ids alone: 1,2,3");
    auto* count = command->add_flag("--count", options->count, "Print the number of tokens alone");
    auto* json = command->add_flag("--json", options->json, "Print one JSON object");
    auto* batch = command->add_flag("--batch", options->batch,
                                    "Read a JSON value a line: a string is answered by its ids, "
                                    "an array of ids by its text; blank lines are skipped");
    ids->excludes(count)->excludes(json)->excludes(batch)->excludes(decode);
    count->excludes(json)->excludes(batch)->excludes(decode);
    json->excludes(batch)->excludes(decode);
    batch->excludes(decode)->excludes(text);
    command->footer("Without -p, -f or --decode the text is read from standard input.\n"
                    "Example: liverow tokenize models/tiny -p \"Once upon a time\"");
    command->callback([&action, options, text, decode] {
        options->input.has_text = text->count() > 0;
        options->has_decode = decode->count() > 0;
        action = [options] { return tokenize(*options); };
    });
}

} // namespace lr::cli
