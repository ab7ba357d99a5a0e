// SPDX-License-Identifier: Apache-2.0
//
// text/tokenizer.h: text to token ids and back, as Hugging Face tokenizers does it.
//
// Encoding: added tokens are cut out of the text; what lies between is normalised (NFC), split into
// words and merged pair by pair (text/tokenizer_file.h says which files are understood). Immutable
// once loaded; every function may be called from many threads at once.
#pragma once

#include "core/status.h"
#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/marked_text.h"
#include "text/tokenizer_file.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lr::text {

// What a text may turn into. The defaults are for text of unknown origin: no control token can come
// out of it, "<|im_end|>" is then ten characters like any others.
struct EncodeOptions {
    bool allow_special = false; // added tokens marked special are recognised
    bool allow_added = true;    // added tokens not marked special (<think>, <tool_call>) are
};

class Tokenizer {
  public:
    // A tokenizer.json, or a folder that holds one.
    static Result<Tokenizer> load(const std::filesystem::path& file_or_folder);
    // The contents of such a file; `where` names it in errors.
    static Result<Tokenizer> parse(std::string_view json, std::string_view where);

    // Text that is not valid UTF-8 is an error (kInvalidArgument) that names the byte offset.
    Result<std::vector<std::int32_t>> encode(std::string_view text,
                                             EncodeOptions options = {}) const;
    // The same for text that is in part from outside: no added token is made out of a stretch that
    // has a byte of `outside` in it, and none of those that would be found without such bytes is
    // lost by them.
    Result<std::vector<std::int32_t>> encode(const MarkedText& text,
                                             EncodeOptions options = {}) const;

    // Valid UTF-8: the tokens' bytes one after the other, every invalid sequence as one U+FFFD. Ids
    // without a token (a model may have padding rows) add nothing.
    std::string decode(std::span<const std::int32_t> ids, bool skip_special) const;

    // The bytes a token stands for, maybe part of a character; "" for an id without a token.
    std::string_view token_bytes(std::int32_t id) const { return bpe_.vocabulary().bytes(id); }
    // The token with exactly this content, an added one before an ordinary one.
    std::optional<std::int32_t> id_of(std::string_view content) const;
    // The highest id + 1; a model's vocabulary may have more rows.
    std::int32_t vocab_size() const { return bpe_.vocabulary().size(); }
    // A control token: special in added_tokens.
    bool is_special(std::int32_t id) const;
    // In the order of the file.
    const std::vector<AddedToken>& added_tokens() const { return added_; }

  private:
    struct Call;
    explicit Tokenizer(TokenizerFile file);
    Result<std::vector<std::int32_t>> encode_marked(std::string_view text,
                                                    std::span<const ByteRange> outside,
                                                    EncodeOptions options) const;
    void encode_normalized(std::string_view text, std::vector<ByteRange> outside,
                           EncodeOptions options, Call& call) const;
    void encode_words(std::string_view text, Call& call) const;

    BytePairEncoder bpe_;
    bool nfc_;
    SplitPattern pattern_;
    std::vector<AddedToken> added_;
    std::vector<bool> special_;    // [vocab_size]
    AddedTokenMatcher raw_;        // tokens looked for in the text as given
    AddedTokenMatcher normalized_; // tokens looked for after normalisation
};

} // namespace lr::text
