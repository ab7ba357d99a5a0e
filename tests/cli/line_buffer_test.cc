// SPDX-License-Identifier: Apache-2.0
#include "cli/line_buffer.h"

#include <gtest/gtest.h>

namespace lr::cli {
namespace {

LineBuffer typed(std::string_view keys, std::vector<std::string> history = {}) {
    LineBuffer buffer(std::move(history));
    for (char key : keys) // one byte at a time, as a slow line would bring them
        buffer.feed({&key, 1});
    return buffer;
}

TEST(LineBuffer, EnterSendsWhatWasTyped) {
    const LineBuffer line = typed("hello\r");
    EXPECT_EQ(line.state(), LineState::kSent);
    EXPECT_EQ(line.text(), "hello");
}

TEST(LineBuffer, KeysMoveAndErase) {
    EXPECT_EQ(typed("abd\x1b[Dc").text(), "abcd");
    EXPECT_EQ(typed("bc\x01"
                    "a\x05"
                    "d")
                  .text(),
              "abcd");
    EXPECT_EQ(typed("bc\x1b[Ha\x1b[Fd").text(), "abcd");
    EXPECT_EQ(typed("abx\x7f"
                    "c")
                  .text(),
              "abc");
    EXPECT_EQ(typed("abc\x1bOD\x1b[3~").text(), "ab");
    EXPECT_EQ(typed("abc\x1b[D\x1b[D\x0b").text(), "a");
    EXPECT_EQ(typed("abc\x1b[D\x15").text(), "c");
    EXPECT_EQ(typed("one two  \x17").text(), "one ");
    EXPECT_EQ(typed("abc\x01\x04").text(), "bc");
    EXPECT_EQ(typed("\x7f\x1b[D\x1b[C\x0b\x15\x17").text(), "");
}

TEST(LineBuffer, CharactersMoveAndEraseWhole) {
    const LineBuffer line = typed("a\u00e9\u4e2d\U0001F600\x1b[D\x7f");
    EXPECT_EQ(line.text(), "a\u00e9\U0001F600");
    EXPECT_EQ(line.cursor(), 3u);
}

TEST(LineBuffer, BytesThatAreNoCharacterAreDropped) {
    EXPECT_EQ(typed("a\xff"
                    "b\xe4\xb8"
                    "c\x80"
                    "d\xe4\x7f")
                  .text(),
              "abc");
}

TEST(LineBuffer, NewLinesComeFromAltEnterCtrlJBackslashAndPastes) {
    EXPECT_EQ(typed("a\x1b\rb\r").text(), "a\nb");
    EXPECT_EQ(typed("a\nb\r").text(), "a\nb");
    EXPECT_EQ(typed("a\\\rb\r").text(), "a\nb");
    const LineBuffer pasted = typed("x\x1b[200~a\rb\nc\x03\x1b[201~y");
    EXPECT_EQ(pasted.text(), "xa\nb\ncy");
    EXPECT_EQ(pasted.state(), LineState::kEditing);
}

TEST(LineBuffer, HistoryComesBackAndTheDraftSurvives) {
    const std::vector<std::string> history = {"first", "second"};
    EXPECT_EQ(typed("dra\x1b[A", history).text(), "second");
    EXPECT_EQ(typed("dra\x1b[A\x10", history).text(), "first");
    EXPECT_EQ(typed("dra\x1b[A\x1b[A\x1b[A", history).text(), "first");
    EXPECT_EQ(typed("dra\x1b[A\x1b[B", history).text(), "dra");
    EXPECT_EQ(typed("dra\x0e", history).text(), "dra");
    EXPECT_EQ(typed("\x1b[A!\r", history).text(), "second!");
}

TEST(LineBuffer, InterruptAndEnd) {
    EXPECT_EQ(typed("abc\x03").state(), LineState::kInterrupted);
    EXPECT_EQ(typed("\x04").state(), LineState::kEnded);
    EXPECT_EQ(typed("a\x04").state(), LineState::kEditing);
}

TEST(LineBuffer, UnknownSequencesAndControlsAddNothing) {
    EXPECT_EQ(typed("a\x1b[1;5Cb\x1b[99~\x1bxc\x02\x06\x07").text(), "abc");
    EXPECT_EQ(typed(std::string("a\x1b[") + std::string(40, '1') + "b").text().front(), 'a');
}

TEST(DrawLine, WrapsAtTheWidthAndFindsTheCursor) {
    const DrawnLine drawn = draw_line("> ", ". ", "abcdef", 6, 5);
    EXPECT_EQ(drawn.rows, (std::vector<std::string>{"> abc", "def"}));
    EXPECT_EQ(drawn.cursor_row, 1u);
    EXPECT_EQ(drawn.cursor_column, 3u);
}

TEST(DrawLine, TheCursorBehindAFullRowStandsOnTheNext) {
    const DrawnLine drawn = draw_line("> ", ". ", "abc", 3, 5);
    EXPECT_EQ(drawn.rows, (std::vector<std::string>{"> abc", ""}));
    EXPECT_EQ(drawn.cursor_row, 1u);
    EXPECT_EQ(drawn.cursor_column, 0u);
}

TEST(DrawLine, NewLinesAreIndentedAndWideCharactersTakeTwoColumns) {
    const DrawnLine drawn = draw_line("> ", ". ", "\u4e2d\u6587\nb", 8, 5);
    EXPECT_EQ(drawn.rows, (std::vector<std::string>{"> \u4e2d", "\u6587", ". b"}));
    EXPECT_EQ(drawn.cursor_row, 2u);
    EXPECT_EQ(drawn.cursor_column, 3u);
}

} // namespace
} // namespace lr::cli
