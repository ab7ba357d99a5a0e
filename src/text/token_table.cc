// SPDX-License-Identifier: Apache-2.0
#include "text/token_table.h"

#include "core/check.h"
#include "text/byte_level.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

namespace lr::text {

namespace {

struct Pair {
    std::string_view left, right;
};

// "a b" or ["a", "b"]. A token has no space in it, so the first space separates.
std::optional<Pair> read_pair(const Json& rule) {
    if (rule.is_array()) {
        const JsonArray& pair = rule.as_array();
        if (pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string())
            return std::nullopt;
        return Pair{pair[0].as_string(), pair[1].as_string()};
    }
    if (!rule.is_string())
        return std::nullopt;
    const std::string_view text = rule.as_string();
    const std::size_t space = text.find(' ');
    if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos)
        return std::nullopt;
    return Pair{text.substr(0, space), text.substr(space + 1)};
}

std::string taken(std::int64_t id, std::string_view by) {
    return fmt::format("expected an id of its own, got {}, the id of {} too", id,
                       json_quote(token_of_bytes(by)));
}

std::string not_three(std::string_view left, std::string_view right) {
    return fmt::format("expected two ordinary tokens that make a third, got {} and {}",
                       json_quote(left), json_quote(right));
}

} // namespace

// Everything kept is at most as long as it is in the file.
TokenTable::TokenTable(std::string_view where, std::size_t file_bytes) : where_(where) {
    arena_.reserve(file_bytes);
}

std::string_view TokenTable::keep(std::string_view text) {
    LR_CHECK_LE(arena_.size() + text.size(), arena_.capacity());
    const std::size_t begin = arena_.size();
    arena_ += text;
    return std::string_view(arena_).substr(begin);
}

// The bytes that the token stands for, or those it is written in.
std::string_view TokenTable::keep_bytes(std::string_view token, bool& is_ordinary) {
    LR_CHECK_LE(arena_.size() + token.size(), arena_.capacity());
    const std::size_t begin = arena_.size();
    is_ordinary = append_bytes_of_token(arena_, token);
    return is_ordinary ? std::string_view(arena_).substr(begin) : keep(token);
}

void TokenTable::fail_vocab(std::string_view token, const Json& id, std::string_view message) {
    if (!vocab_status_.ok())
        return;
    const JsonCursor entry(where_, fmt::format("model.vocab.{}", token), id);
    vocab_status_ = message.empty() ? Status(fail(entry.read_int(0, kMaxId).error()))
                                    : Status(entry.fail_here(Code::kInvalidFile, message));
}

void TokenTable::take_vocab(std::string_view token, const Json& id) {
    if (!id.is_int() || id.as_int() < 0 || id.as_int() > kMaxId)
        return fail_vocab(token, id, "");
    if (token.empty())
        return fail_vocab(token, id, "expected no empty token, got \"\"");
    const auto i = static_cast<std::size_t>(id.as_int());
    if (i >= tokens_.size())
        tokens_.resize(i + 1);
    if (!tokens_[i].bytes.empty())
        return fail_vocab(token, id, taken(id.as_int(), tokens_[i].bytes));
    bool ordinary = false;
    tokens_[i].bytes = keep_bytes(token, ordinary);
    tokens_[i].searchable = ordinary;
    if (!ordinary && !foreign_.insert(tokens_[i].bytes).second)
        fail_vocab(token, id, "expected each token once, got it again");
}

void TokenTable::take_merge(const Json& rule) {
    if (!merge_status_.ok())
        return;
    const std::optional<Pair> pair = read_pair(rule);
    if (!pair) {
        merge_status_ = merge_failure(
            merges_.size(), fmt::format("expected \"left right\" or [\"left\", \"right\"], got {}",
                                        json_excerpt(rule)));
        return;
    }
    bool left = false, right = false;
    const std::string_view left_bytes = keep_bytes(pair->left, left);
    const std::string_view right_bytes = keep_bytes(pair->right, right);
    if (left && right)
        merges_.push_back({left_bytes.data(), static_cast<std::uint32_t>(left_bytes.size()),
                           static_cast<std::uint32_t>(right_bytes.size())});
    else
        merge_status_ = merge_failure(merges_.size(), not_three(pair->left, pair->right));
}

std::vector<std::optional<std::int32_t>>
TokenTable::ids_of(const std::vector<std::string_view>& contents) const {
    std::vector<std::optional<std::int32_t>> ids(contents.size());
    std::vector<std::string> bytes(contents.size());
    // By bytes; of tokens outside the byte alphabet, and of tokens in it.
    std::unordered_map<std::string_view, std::size_t> wanted[2];
    for (std::size_t i = 0; i < contents.size(); ++i) {
        const bool ordinary = append_bytes_of_token(bytes[i], contents[i]);
        if (!ordinary)
            bytes[i] = contents[i];
        wanted[ordinary].emplace(bytes[i], i);
    }
    for (std::size_t id = 0; id < tokens_.size(); ++id) {
        const auto& among = wanted[tokens_[id].searchable];
        if (const auto found = among.find(tokens_[id].bytes); found != among.end())
            ids[found->second] = static_cast<std::int32_t>(id);
    }
    return ids;
}

std::string TokenTable::add(std::int32_t id, std::string_view content) {
    const auto i = static_cast<std::size_t>(id);
    if (i >= tokens_.size())
        tokens_.resize(i + 1);
    if (!tokens_[i].bytes.empty())
        return taken(id, tokens_[i].bytes);
    tokens_[i] = {keep(content), false};
    return {};
}

void TokenTable::replace(std::int32_t id, std::string_view content, bool special) {
    VocabularyToken& token = tokens_[static_cast<std::size_t>(id)];
    // Bytes that merges may still lead to stay as they are only if they are the content.
    token.searchable = token.searchable && !special && token.bytes == content;
    token.bytes = keep(content);
}

Result<Vocabulary> TokenTable::vocabulary() const {
    Vocabulary vocabulary(tokens_);
    if (vocabulary.repeated() >= 0)
        return fail(Code::kInvalidFile, "{}: model.vocab: expected each token once, got {} again",
                    where_, json_quote(token_of_bytes(vocabulary.bytes(vocabulary.repeated()))));
    for (int byte = 0; byte < 256; ++byte) {
        const std::string bytes(1, static_cast<char>(byte));
        if (vocabulary.find(bytes) < 0)
            return fail(Code::kUnsupported,
                        "{}: model.vocab: expected an ordinary token for each byte, got none for "
                        "byte 0x{:02X} ({})",
                        where_, byte, json_quote(token_of_bytes(bytes)));
    }
    return vocabulary;
}

// Block by block: the tables are larger than the caches, so each block's slots are fetched ahead.
Result<MergeTable> TokenTable::merges(const Vocabulary& vocabulary) const {
    constexpr std::size_t kBlock = 32;
    std::array<std::uint64_t, kBlock> left_hashes, right_hashes;
    std::array<MergeRule, kBlock> rules;
    MergeTable table(merges_.size());
    std::int32_t next = 0; // trainers number tokens as they merge: look there before searching
    for (std::size_t first = 0; first < merges_.size(); first += kBlock) {
        const std::size_t count = std::min(kBlock, merges_.size() - first);
        for (std::size_t i = 0; i < count; ++i) {
            left_hashes[i] = hash_bytes(merges_[first + i].left());
            right_hashes[i] = hash_bytes(merges_[first + i].right());
            vocabulary.prefetch(left_hashes[i]);
            vocabulary.prefetch(right_hashes[i]);
        }
        for (std::size_t i = 0; i < count; ++i) {
            const Merge& merge = merges_[first + i];
            rules[i] = {vocabulary.find(merge.left(), left_hashes[i]),
                        vocabulary.find(merge.right(), right_hashes[i]),
                        is_token(next, merge.both()) ? next : vocabulary.find(merge.both())};
            if (rules[i].left < 0 || rules[i].right < 0 || rules[i].result < 0)
                return merge_failure(first + i, not_three(token_of_bytes(merge.left()),
                                                          token_of_bytes(merge.right())));
            table.prefetch(rules[i].left, rules[i].right);
            next = rules[i].result + 1;
        }
        for (std::size_t i = 0; i < count; ++i)
            if (!table.add(rules[i]))
                return merge_failure(first + i, "expected each merge once, got one again");
    }
    LR_TRY(merge_status_);
    return table;
}

bool TokenTable::is_token(std::int32_t id, std::string_view bytes) const {
    const auto i = static_cast<std::size_t>(id);
    return i < tokens_.size() && tokens_[i].searchable && tokens_[i].bytes == bytes;
}

Failure TokenTable::merge_failure(std::size_t rule, std::string_view message) const {
    return fail(Code::kInvalidFile, "{}: model.merges[{}]: {}", where_, rule, message);
}

} // namespace lr::text
