// SPDX-License-Identifier: Apache-2.0
#include "cli/logprob_line.h"

#include <gtest/gtest.h>

namespace lr::cli {
namespace {

TEST(LogprobLine, QuotesAnyBytesAsOnePrintableLine) {
    EXPECT_EQ(quoted(""), "\"\"");
    EXPECT_EQ(quoted(" time"), "\" time\"");
    EXPECT_EQ(quoted("a\"b\\c\n\r\t"), R"("a\"b\\c\n\r\t")");
    EXPECT_EQ(quoted(std::string_view("\0\x1B\x7F", 3)), R"("\x00\x1B\x7F")");
    EXPECT_EQ(quoted("\u00E9\u732B\U0001F600"), "\"\u00E9\u732B\U0001F600\"");
    EXPECT_EQ(quoted("\u0085"), R"("\xC2\x85")");
    EXPECT_EQ(quoted("\xE7\x8C"), R"("\xE7\x8C")"); // the beginning of a character
    EXPECT_EQ(quoted("\xFF\x61\xAB"), R"("\xFFa\xAB")");
}

TEST(LogprobLine, ListsTheTokenAndTheLikeliest) {
    engine::RowLogprobs row{.token = {1053, -0.4829114}, .rank = 2, .top = {}};
    EXPECT_EQ(logprob_line(row, nullptr), "1053  -0.482911  rank 2");
    row.top = {{12, -0.25}, {1053, -0.4829114}};
    EXPECT_EQ(logprob_line(row, nullptr), "1053  -0.482911  rank 2 | 12 -0.250000, 1053 -0.482911");
}

} // namespace
} // namespace lr::cli
