// SPDX-License-Identifier: Apache-2.0
//
// text/tokenizer_file.h: tokenizer.json (the Hugging Face tokenizers format) read into plain data.
//
// What the file may ask for: a byte-level BPE model whose vocabulary holds all 256 bytes; the
// normaliser NFC or none; the split patterns of text/pre_tokenizer.h; added tokens with all their
// flags; ByteLevel as decoder and post-processor. Anything else that would change ids is refused.
#pragma once

#include "core/status.h"
#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/pre_tokenizer.h"
#include "text/vocabulary.h"

#include <string_view>
#include <vector>

namespace lr::text {

struct TokenizerFile {
    Vocabulary vocabulary; // added tokens included; special ones are not searchable
    MergeTable merges;
    bool ignore_merges = false;
    bool nfc = false;
    SplitPattern pattern = SplitPattern::kQwen35;
    std::vector<AddedToken> added; // distinct ids and contents
};

// `where` names the file in errors.
Result<TokenizerFile> parse_tokenizer_file(std::string_view json, std::string_view where);

} // namespace lr::text
