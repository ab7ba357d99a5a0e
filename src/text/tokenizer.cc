// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer.h"

#include "core/check.h"
#include "core/text_file.h"
#include "text/unicode.h"

#include <algorithm>
#include <cerrno>
#include <deque>

namespace lr::text {

namespace {

// Words seen in one call, so that a repeated one is merged once: a direct-mapped table that points
// into the texts and ids of the call. Long words are rare and not kept.
class SeenWords {
  public:
    static constexpr std::size_t kSlots = 2048; // 48 KiB, inside the second-level cache
    static constexpr std::size_t kMaxBytes = 64;

    // A short text repeats few words: it does without the table.
    explicit SeenWords(std::size_t text_bytes) : slots_(text_bytes < 1024 ? 0 : kSlots) {}

    // Appends the ids of an equal word seen before to `ids`; false when there is none.
    bool append(std::string_view word, std::uint64_t hash, std::vector<std::int32_t>& ids) const {
        if (slots_.empty())
            return false;
        const Seen& seen = slots_[hash % kSlots];
        if (seen.length != word.size() || std::memcmp(seen.begin, word.data(), word.size()) != 0)
            return false;
        for (std::size_t i = 0; i < seen.count; ++i)
            ids.push_back(ids[seen.first + i]);
        return true;
    }

    void remember(std::string_view word, std::uint64_t hash, std::size_t first, std::size_t count) {
        if (!slots_.empty() && word.size() <= kMaxBytes)
            slots_[hash % kSlots] = {word.data(), first, static_cast<std::uint32_t>(count),
                                     static_cast<std::uint32_t>(word.size())};
    }

  private:
    struct Seen {
        const char* begin = nullptr;
        std::size_t first = 0; // of the ids
        std::uint32_t count = 0;
        std::uint32_t length = 0;
    };
    std::vector<Seen> slots_; // kSlots or none
};

// The parts of the ranges in [begin, end), counted from there.
std::vector<ByteRange> ranges_within(std::span<const ByteRange> ranges, std::size_t begin,
                                     std::size_t end) {
    std::vector<ByteRange> within;
    auto at = std::partition_point(ranges.begin(), ranges.end(),
                                   [&](const ByteRange& range) { return range.end <= begin; });
    for (; at != ranges.end() && at->begin < end; ++at)
        within.push_back({std::max(at->begin, begin) - begin, std::min(at->end, end) - begin});
    return within;
}

} // namespace

// The state of one encode().
struct Tokenizer::Call {
    explicit Call(std::size_t text_bytes) : seen(text_bytes) {}

    std::vector<std::int32_t> ids;
    std::deque<std::string> normalized; // texts that `seen` may point into
    SeenWords seen;
    BytePairEncoder::Scratch scratch;
};

Tokenizer::Tokenizer(TokenizerFile file)
    : bpe_(std::move(file.vocabulary), std::move(file.merges), file.ignore_merges), nfc_(file.nfc),
      pattern_(file.pattern), added_(std::move(file.added)),
      special_(static_cast<std::size_t>(bpe_.vocabulary().size())) {
    std::vector<AddedToken> raw;
    std::vector<AddedToken> normalized;
    for (const AddedToken& token : added_) {
        special_[static_cast<std::size_t>(token.id)] = token.special;
        (token.normalized ? normalized : raw).push_back(token);
    }
    for (AddedToken& token : normalized)
        if (nfc_)
            token.content = normalize_nfc(token.content);
    raw_ = AddedTokenMatcher(std::move(raw));
    normalized_ = AddedTokenMatcher(std::move(normalized));
}

Result<Tokenizer> Tokenizer::parse(std::string_view json, std::string_view where) {
    LR_TRY_ASSIGN(TokenizerFile file, parse_tokenizer_file(json, where));
    return Tokenizer(std::move(file));
}

Result<Tokenizer> Tokenizer::load(const std::filesystem::path& file_or_folder) {
    std::error_code ignored;
    std::filesystem::path path = file_or_folder;
    if (std::filesystem::is_directory(path, ignored))
        path /= "tokenizer.json";
    LR_TRY_ASSIGN(const std::string text, read_text_file(path.string()));
    return parse(text, path.string());
}

Result<std::vector<std::int32_t>> Tokenizer::encode(std::string_view text,
                                                    EncodeOptions options) const {
    return encode_marked(text, {}, options);
}

Result<std::vector<std::int32_t>> Tokenizer::encode(const MarkedText& text,
                                                    EncodeOptions options) const {
    std::size_t end = 0;
    for (const ByteRange& range : text.outside) {
        LR_CHECK(range.begin < range.end && range.end <= text.text.size());
        LR_CHECK(range.begin > end || end == 0);
        end = range.end;
    }
    return encode_marked(text.text, text.outside, options);
}

Result<std::vector<std::int32_t>> Tokenizer::encode_marked(std::string_view text,
                                                           std::span<const ByteRange> outside,
                                                           EncodeOptions options) const {
    if (const std::optional<std::size_t> offset = first_invalid_utf8(text))
        return fail(Code::kInvalidArgument,
                    "tokenizer: expected text in UTF-8, got an invalid sequence at byte {}",
                    *offset);
    Call call(text.size());
    call.ids.reserve(text.size() / 4 + 4);
    for (const AddedTokenMatcher::Piece& piece :
         raw_.split(text, options.allow_special, options.allow_added, outside)) {
        if (piece.id >= 0)
            call.ids.push_back(piece.id);
        else
            encode_normalized(text.substr(piece.begin, piece.end - piece.begin),
                              ranges_within(outside, piece.begin, piece.end), options, call);
    }
    return std::move(call.ids);
}

void Tokenizer::encode_normalized(std::string_view text, std::vector<ByteRange> outside,
                                  EncodeOptions options, Call& call) const {
    if (nfc_ && !is_surely_nfc(text))
        text = call.normalized.emplace_back(normalize_nfc(text, outside));
    for (const AddedTokenMatcher::Piece& piece :
         normalized_.split(text, options.allow_special, options.allow_added, outside)) {
        if (piece.id >= 0)
            call.ids.push_back(piece.id);
        else
            encode_words(text.substr(piece.begin, piece.end - piece.begin), call);
    }
}

void Tokenizer::encode_words(std::string_view text, Call& call) const {
    std::size_t begin = 0;
    while (begin < text.size()) {
        const std::size_t end = piece_end(pattern_, text, begin);
        const std::string_view word = text.substr(begin, end - begin);
        begin = end;
        const std::uint64_t hash = hash_bytes(word);
        if (call.seen.append(word, hash, call.ids))
            continue;
        const std::size_t first = call.ids.size();
        bpe_.encode(word, hash, call.scratch, call.ids);
        call.seen.remember(word, hash, first, call.ids.size() - first);
    }
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, bool skip_special) const {
    std::string bytes;
    for (std::int32_t id : ids)
        if (!(skip_special && is_special(id)))
            bytes += token_bytes(id);
    return first_invalid_utf8(bytes) ? replace_invalid_utf8(bytes) : bytes;
}

std::optional<std::int32_t> Tokenizer::id_of(std::string_view content) const {
    for (const AddedToken& token : added_)
        if (token.content == content)
            return token.id;
    const std::int32_t id = bpe_.vocabulary().find(content);
    return id < 0 ? std::nullopt : std::optional(id);
}

bool Tokenizer::is_special(std::int32_t id) const {
    return id >= 0 && id < vocab_size() && special_[static_cast<std::size_t>(id)];
}

} // namespace lr::text
