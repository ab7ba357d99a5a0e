// SPDX-License-Identifier: Apache-2.0
//
// The scanner against the regular expression itself, run by PCRE2.
#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/pre_tokenizer.h"
#include "text/unicode.h"

#include <gtest/gtest.h>
#include <pcre2.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

namespace lr::text {
namespace {

class Oracle {
  public:
    explicit Oracle(std::string_view pattern) {
        int error = 0;
        PCRE2_SIZE offset = 0;
        code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                  PCRE2_UTF | PCRE2_UCP, &error, &offset, nullptr));
        EXPECT_NE(code_, nullptr);
        pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);
        match_.reset(pcre2_match_data_create_from_pattern(code_.get(), nullptr));
    }

    std::size_t piece_end(std::string_view text, std::size_t begin) {
        const int found = pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()),
                                      text.size(), begin, PCRE2_ANCHORED, match_.get(), nullptr);
        return found > 0 ? pcre2_get_ovector_pointer(match_.get())[1] : 0;
    }

  private:
    struct Free {
        void operator()(pcre2_code* code) const { pcre2_code_free(code); }
        void operator()(pcre2_match_data* match) const { pcre2_match_data_free(match); }
    };
    std::unique_ptr<pcre2_code, Free> code_;
    std::unique_ptr<pcre2_match_data, Free> match_;
};

// Characters on both sides of every distinction that the pattern makes. All of them are older than
// Unicode 14, so that the library knows them.
const std::vector<std::u32string> kAtoms = {
    U"'",      U"'s",         U"'T",         U"'re",    U"'VE",        U"'m",     U"'lL",
    U"'d",     U"'\u017F",    U"s",          U"l",      U"e",          U"\u017F", U"\u212A",
    U"a",      U"Z",          U"\u00E9",     U"\u0416", U"\u4E00",     U"\uAC00", U"\u0E01",
    U"\u0301", U"\u0E31",     U"\u093F",     U"\u20DD", U"0",          U"9",      U"\u0663",
    U"\u00BD", U"\u2167",     U"\uFF11",     U" ",      U"  ",         U"\t",     U"\n",
    U"\r",     U"\r\n",       U"\u000B",     U"\u0085", U"\u00A0",     U"\u2003", U"\u2028",
    U"\u3000", U"\u1680",     U"!",          U"-",      U"_",          U"\u2019", U"\u200D",
    U"\u200B", U"\U0001F600", U"\U0001F1EA", U"\uFE0F", U"\uFEFF",     U"\u0378", U"\uE000",
    U"\u0001", U"\u001C",     U"$",          U"\u20AC", U"\U0010FFFF", U"\u00AD", U"<|",
    U"\u0903",
};

TEST(PreTokenizerPcre2, ScannerAgreesWithTheExpressionOnRandomText) {
    Oracle oracle(kQwen35Pattern);
    std::mt19937 random(20240607);
    for (int round = 0; round < 60000; ++round) {
        // Few different atoms make long runs and repeated neighbours likely.
        std::vector<std::string> atoms;
        for (unsigned n = 1 + random() % 6; n > 0; --n) {
            std::string bytes;
            for (char32_t c : kAtoms[random() % kAtoms.size()])
                append_utf8(bytes, c);
            atoms.push_back(bytes);
        }
        std::string text;
        for (unsigned n = random() % 14; n > 0; --n)
            text += atoms[random() % atoms.size()];
        for (std::size_t begin = 0; begin < text.size();) {
            const std::size_t end = piece_end(SplitPattern::kQwen35, text, begin);
            ASSERT_EQ(end, oracle.piece_end(text, begin)) << "round " << round << ", byte " << begin
                                                          << " of " << testing::PrintToString(text);
            begin = end;
        }
    }
}

TEST(PreTokenizerPcre2, ScannerAgreesOnEveryPairOfAtoms) {
    Oracle oracle(kQwen35Pattern);
    for (const std::u32string& first : kAtoms)
        for (const std::u32string& second : kAtoms) {
            std::string text;
            for (char32_t c : U"x" + first + second + first)
                append_utf8(text, c);
            for (std::size_t begin = 0; begin < text.size();) {
                const std::size_t end = piece_end(SplitPattern::kQwen35, text, begin);
                ASSERT_EQ(end, oracle.piece_end(text, begin)) << testing::PrintToString(text);
                begin = end;
            }
        }
}

} // namespace
} // namespace lr::text
