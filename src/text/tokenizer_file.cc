// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer_file.h"

#include "core/json.h"
#include "text/token_table.h"
#include "text/unicode.h"

#include <optional>
#include <unordered_set>
#include <utility>

namespace lr::text {

namespace {

Failure refuse(const JsonCursor& cursor, std::string_view expected) {
    return cursor.fail_here(Code::kUnsupported, fmt::format("expected {}, got {}", expected,
                                                            json_excerpt(cursor.value())));
}

// The member must be absent, null or, if given, `allowed` ("" or false or 0 mean "not used").
Status expect_unused(const JsonCursor& object, std::string_view key) {
    if (!object.has(key))
        return {};
    const JsonCursor cursor = object.member(key);
    const Json& value = cursor.value();
    const bool unused = (value.is_bool() && !value.as_bool()) ||
                        (value.is_string() && value.as_string().empty()) ||
                        (value.is_number() && value.as_double() == 0.0);
    if (!unused)
        return refuse(cursor, "it unused (null)");
    return {};
}

// The single elements of a Sequence's list `key`, or the component itself.
Result<std::vector<JsonCursor>> components(const JsonCursor& component, std::string_view key) {
    LR_TRY_ASSIGN(const std::string type, component.required_string("type"));
    if (type != "Sequence")
        return std::vector<JsonCursor>{component};
    LR_TRY_ASSIGN(const JsonCursor list, component.required_array(key));
    return list.read_array();
}

Status expect_type(const JsonCursor& component, std::string_view wanted) {
    LR_TRY_ASSIGN(const std::string type, component.required_string("type"));
    if (type != wanted)
        return refuse(component.member("type"), json_quote(wanted));
    return {};
}

Result<bool> read_normalizer(const JsonCursor& root) {
    LR_TRY_ASSIGN(const std::optional<JsonCursor> normalizer, root.optional_object("normalizer"));
    if (!normalizer)
        return false;
    LR_TRY_ASSIGN(const std::vector<JsonCursor> parts, components(*normalizer, "normalizers"));
    for (const JsonCursor& part : parts)
        LR_TRY(expect_type(part, "NFC"));
    return !parts.empty();
}

Result<SplitPattern> read_split(const JsonCursor& split) {
    LR_TRY(expect_type(split, "Split"));
    LR_TRY_ASSIGN(const std::string behavior, split.required_string("behavior"));
    if (behavior != "Isolated")
        return refuse(split.member("behavior"), "\"Isolated\"");
    LR_TRY(expect_unused(split, "invert"));
    LR_TRY_ASSIGN(const JsonCursor pattern, split.required_object("pattern"));
    LR_TRY_ASSIGN(const std::string regex, pattern.required_string("Regex"));
    Result<SplitPattern> known = recognise_pattern(regex);
    if (!known)
        return pattern.fail_here(known.error().code(), known.error().message());
    return *known;
}

Result<SplitPattern> read_pre_tokenizer(const JsonCursor& root) {
    LR_TRY_ASSIGN(const JsonCursor pre_tokenizer, root.required_object("pre_tokenizer"));
    LR_TRY_ASSIGN(const std::vector<JsonCursor> parts, components(pre_tokenizer, "pretokenizers"));
    if (parts.size() != 2)
        return pre_tokenizer.fail_here(
            Code::kUnsupported,
            fmt::format("expected a Sequence of Split and ByteLevel, got {} parts", parts.size()));
    LR_TRY_ASSIGN(const SplitPattern pattern, read_split(parts[0]));
    LR_TRY(expect_type(parts[1], "ByteLevel"));
    LR_TRY(expect_unused(parts[1], "add_prefix_space"));
    // Absent means true: the bytes would be split once more, by GPT-2's pattern.
    LR_TRY_ASSIGN(const bool use_regex, parts[1].optional_bool("use_regex", true));
    if (use_regex)
        return parts[1].fail_here(Code::kUnsupported, "expected use_regex false, got true");
    return pattern;
}

// ByteLevel as post-processor changes offsets, which we do not have, and no ids.
Status check_decoders(const JsonCursor& root) {
    LR_TRY_ASSIGN(const JsonCursor decoder, root.required_object("decoder"));
    LR_TRY(expect_type(decoder, "ByteLevel"));
    LR_TRY_ASSIGN(const std::optional<JsonCursor> processor,
                  root.optional_object("post_processor"));
    if (!processor)
        return {};
    LR_TRY_ASSIGN(const std::vector<JsonCursor> parts, components(*processor, "processors"));
    for (const JsonCursor& part : parts)
        LR_TRY(expect_type(part, "ByteLevel"));
    return {};
}

Status check_model_options(const JsonCursor& model) {
    if (model.has("type"))
        LR_TRY(expect_type(model, "BPE"));
    for (const char* key :
         {"dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback"})
        LR_TRY(expect_unused(model, key));
    return {};
}

Result<AddedToken> read_added_token(const JsonCursor& item) {
    AddedToken token;
    LR_TRY_ASSIGN(const std::int64_t id, item.required_int("id", 0, TokenTable::kMaxId));
    token.id = static_cast<std::int32_t>(id);
    LR_TRY_ASSIGN(token.content, item.required_string("content"));
    if (token.content.empty())
        return item.fail_here(Code::kInvalidFile, "expected content, got \"\"");
    LR_TRY_ASSIGN(token.special, item.optional_bool("special", false));
    LR_TRY_ASSIGN(token.lstrip, item.optional_bool("lstrip", false));
    LR_TRY_ASSIGN(token.rstrip, item.optional_bool("rstrip", false));
    LR_TRY_ASSIGN(token.normalized, item.optional_bool("normalized", !token.special));
    LR_TRY_ASSIGN(token.single_word, item.optional_bool("single_word", false));
    return token;
}

// An added token may stand in the vocabulary too, then under the same id. A special one is taken
// out of the search, so that no text can become a control token by merging.
Status place_added_tokens(const std::vector<JsonCursor>& items,
                          const std::vector<AddedToken>& added, TokenTable& table) {
    std::vector<std::string_view> contents;
    for (const AddedToken& token : added)
        contents.push_back(token.content);
    const std::vector<std::optional<std::int32_t>> known = table.ids_of(contents);
    for (std::size_t i = 0; i < added.size(); ++i) {
        const AddedToken& token = added[i];
        if (known[i] && *known[i] != token.id)
            return items[i].fail_here(
                Code::kInvalidFile,
                fmt::format("expected id {} as in the vocabulary, got {}", *known[i], token.id));
        if (known[i]) {
            table.replace(token.id, token.content, token.special);
            continue;
        }
        const std::string error = table.add(token.id, token.content);
        if (!error.empty())
            return items[i].fail_here(Code::kInvalidFile, error);
    }
    return {};
}

Result<std::vector<AddedToken>> read_added_tokens(const JsonCursor& root, bool nfc,
                                                  TokenTable& table) {
    std::vector<AddedToken> added;
    std::unordered_set<std::string> contents; // as they are looked for
    LR_TRY_ASSIGN(const std::optional<JsonCursor> list, root.optional_array("added_tokens"));
    if (!list)
        return added;
    LR_TRY_ASSIGN(const std::vector<JsonCursor> items, list->read_array());
    for (const JsonCursor& item : items) {
        LR_TRY_ASSIGN(AddedToken token, read_added_token(item));
        if (!contents.insert(nfc && token.normalized ? normalize_nfc(token.content) : token.content)
                 .second)
            return item.fail_here(
                Code::kInvalidFile,
                fmt::format("expected each content once, got {} again", json_quote(token.content)));
        added.push_back(std::move(token));
    }
    LR_TRY(place_added_tokens(items, added, table));
    return added;
}

} // namespace

Result<TokenizerFile> parse_tokenizer_file(std::string_view text, std::string_view where) {
    TokenTable table(where, text.size());
    const auto take_vocab = [&](std::string_view token, const Json& id) {
        table.take_vocab(token, id);
    };
    const auto take_merge = [&](std::string_view, const Json& rule) { table.take_merge(rule); };
    const JsonPart parts[] = {{{"model", "vocab"}, take_vocab}, {{"model", "merges"}, take_merge}};
    LR_TRY_ASSIGN(const Json json, parse_json(text, where, parts));
    const JsonCursor root{std::string(where), json};
    LR_TRY(root.expect_object());
    for (const char* key : {"truncation", "padding"})
        LR_TRY(expect_unused(root, key));
    TokenizerFile file;
    LR_TRY_ASSIGN(file.nfc, read_normalizer(root));
    LR_TRY_ASSIGN(const JsonCursor model, root.required_object("model"));
    LR_TRY(check_model_options(model));
    LR_TRY_ASSIGN(file.ignore_merges, model.optional_bool("ignore_merges", false));
    LR_TRY_ASSIGN(file.pattern, read_pre_tokenizer(root));
    LR_TRY(check_decoders(root));

    LR_TRY_ASSIGN([[maybe_unused]] const JsonCursor vocab, model.required_object("vocab"));
    LR_TRY_ASSIGN([[maybe_unused]] const JsonCursor merges, model.required_array("merges"));
    LR_TRY(table.vocab_status());
    LR_TRY_ASSIGN(file.added, read_added_tokens(root, file.nfc, table));
    LR_TRY_ASSIGN(file.vocabulary, table.vocabulary());
    LR_TRY_ASSIGN(file.merges, table.merges(file.vocabulary));
    return file;
}

} // namespace lr::text
