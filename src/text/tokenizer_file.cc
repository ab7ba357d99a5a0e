// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer_file.h"

#include "core/json.h"
#include "text/byte_level.h"
#include "text/unicode.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace lr::text {

namespace {

// Ids index tables, so a hostile file must not choose their size freely.
constexpr std::int64_t kMaxId = (1 << 22) - 1;

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

// Tokens by id while they are being collected.
class TokenTable {
  public:
    // An error message, empty when the id was free.
    std::string add(std::int32_t id, VocabularyToken token) {
        const auto i = static_cast<std::size_t>(id);
        if (i >= tokens_.size())
            tokens_.resize(i + 1);
        if (!tokens_[i].bytes.empty())
            return fmt::format("expected an id of its own, got {}, the id of {} too", id,
                               json_quote(token_of_bytes(tokens_[i].bytes)));
        tokens_[i] = std::move(token);
        return {};
    }
    VocabularyToken& operator[](std::int32_t id) { return tokens_[static_cast<std::size_t>(id)]; }
    const std::vector<VocabularyToken>& tokens() const { return tokens_; }
    bool is_searchable(std::int32_t id, std::string_view bytes) const {
        const auto i = static_cast<std::size_t>(id);
        return i < tokens_.size() && tokens_[i].searchable && tokens_[i].bytes == bytes;
    }

  private:
    std::vector<VocabularyToken> tokens_;
};

// A token with a character outside the byte alphabet cannot come out of text; it keeps its own
// bytes for decoding.
Status read_vocab(const JsonCursor& vocab, TokenTable& table) {
    for (const JsonMember& entry : vocab.value().as_object().members()) {
        if (!entry.value.is_int() || entry.value.as_int() < 0 || entry.value.as_int() > kMaxId)
            return fail(vocab.member(entry.key).read_int(0, kMaxId).error());
        if (entry.key.empty())
            return vocab.fail_here(Code::kInvalidFile, "expected no empty token, got \"\"");
        const std::optional<std::string> bytes = bytes_of_token(entry.key);
        const std::string error = table.add(static_cast<std::int32_t>(entry.value.as_int()),
                                            {bytes.value_or(entry.key), bytes.has_value()});
        if (!error.empty())
            return vocab.member(entry.key).fail_here(Code::kInvalidFile, error);
    }
    return {};
}

Result<AddedToken> read_added_token(const JsonCursor& item) {
    AddedToken token;
    LR_TRY_ASSIGN(const std::int64_t id, item.required_int("id", 0, kMaxId));
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
Result<std::vector<AddedToken>> read_added_tokens(const JsonCursor& root, const JsonCursor& vocab,
                                                  bool nfc, TokenTable& table) {
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
        if (const Json* base = vocab.value().find(token.content)) {
            if (base->as_int() != token.id)
                return item.fail_here(Code::kInvalidFile,
                                      fmt::format("expected id {} as in the vocabulary, got {}",
                                                  base->as_int(), token.id));
            table[token.id].bytes = token.content;
            table[token.id].searchable = table[token.id].searchable && !token.special &&
                                         bytes_of_token(token.content) == token.content;
        } else {
            const std::string error = table.add(token.id, {token.content, false});
            if (!error.empty())
                return item.fail_here(Code::kInvalidFile, error);
        }
        added.push_back(std::move(token));
    }
    return added;
}

// "a b" or ["a", "b"]. A token has no space in it, so the first space separates.
Result<std::pair<std::string_view, std::string_view>> read_pair(const JsonCursor& merges,
                                                                std::size_t i) {
    const Json& rule = merges.value().as_array()[i];
    if (rule.is_array() && rule.as_array().size() == 2 && rule.as_array()[0].is_string() &&
        rule.as_array()[1].is_string())
        return std::pair<std::string_view, std::string_view>(rule.as_array()[0].as_string(),
                                                             rule.as_array()[1].as_string());
    if (rule.is_string()) {
        const std::string_view text = rule.as_string();
        const std::size_t space = text.find(' ');
        if (space != std::string_view::npos && text.find(' ', space + 1) == std::string_view::npos)
            return std::pair(text.substr(0, space), text.substr(space + 1));
    }
    return merges.element(i).fail_expected("\"left right\" or [\"left\", \"right\"]");
}

// The second of two equal (left, right), if any.
std::optional<std::size_t> repeated_merge(const std::vector<MergeRule>& rules) {
    std::vector<std::pair<std::uint64_t, std::size_t>> pairs;
    pairs.reserve(rules.size());
    for (std::size_t i = 0; i < rules.size(); ++i)
        pairs.emplace_back(static_cast<std::uint64_t>(rules[i].left) << 32 |
                               static_cast<std::uint32_t>(rules[i].right),
                           i);
    std::sort(pairs.begin(), pairs.end());
    for (std::size_t i = 1; i < pairs.size(); ++i)
        if (pairs[i].first == pairs[i - 1].first)
            return pairs[i].second;
    return std::nullopt;
}

Result<std::vector<MergeRule>> read_merges(const JsonCursor& model, const TokenTable& table,
                                           const Vocabulary& vocabulary) {
    LR_TRY_ASSIGN(const JsonCursor merges, model.required_array("merges"));
    const std::size_t count = merges.value().as_array().size();
    std::vector<MergeRule> rules;
    rules.reserve(count);
    std::int32_t next = 0; // trainers number tokens as they merge: look there before searching
    for (std::size_t i = 0; i < count; ++i) {
        LR_TRY_ASSIGN(const auto pair, read_pair(merges, i));
        const std::optional<std::string> left = bytes_of_token(pair.first);
        const std::optional<std::string> right = bytes_of_token(pair.second);
        MergeRule rule{-1, -1, -1};
        if (left && right) {
            const std::string both = *left + *right;
            rule = {vocabulary.find(*left), vocabulary.find(*right),
                    table.is_searchable(next, both) ? next : vocabulary.find(both)};
        }
        if (rule.left < 0 || rule.right < 0 || rule.result < 0)
            return merges.element(i).fail_here(
                Code::kInvalidFile,
                fmt::format("expected two ordinary tokens that make a third, got {} and {}",
                            json_quote(pair.first), json_quote(pair.second)));
        next = rule.result + 1;
        rules.push_back(rule);
    }
    if (const std::optional<std::size_t> again = repeated_merge(rules))
        return merges.element(*again).fail_here(Code::kInvalidFile,
                                                "expected each merge once, got one again");
    return rules;
}

Status check_bytes(const JsonCursor& vocab, const Vocabulary& vocabulary) {
    for (int byte = 0; byte < 256; ++byte) {
        const std::string bytes(1, static_cast<char>(byte));
        if (vocabulary.find(bytes) < 0)
            return vocab.fail_here(
                Code::kUnsupported,
                fmt::format("expected an ordinary token for each byte, got none for byte 0x{:02X} "
                            "({})",
                            byte, json_quote(token_of_bytes(bytes))));
    }
    return {};
}

} // namespace

Result<TokenizerFile> parse_tokenizer_file(std::string_view text, std::string_view where) {
    LR_TRY_ASSIGN(const Json json, parse_json(text, where));
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

    TokenTable table;
    LR_TRY_ASSIGN(const JsonCursor vocab, model.required_object("vocab"));
    LR_TRY(read_vocab(vocab, table));
    LR_TRY_ASSIGN(file.added, read_added_tokens(root, vocab, file.nfc, table));
    file.vocabulary = Vocabulary(table.tokens());
    LR_TRY(check_bytes(vocab, file.vocabulary));
    LR_TRY_ASSIGN(file.merges, read_merges(model, table, file.vocabulary));
    return file;
}

} // namespace lr::text
