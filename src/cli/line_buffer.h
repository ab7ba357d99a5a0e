// SPDX-License-Identifier: Apache-2.0
//
// cli/line_buffer.h: what a person types, edited: the keys of a terminal in, text and cursor out.
// Knows nothing of file descriptors; cli/line_editor.h connects it to a terminal.
//
// Keys: arrows, Home/End, Ctrl-A/E/B/F, Backspace, Delete, Ctrl-D, Ctrl-H, Ctrl-K/U/W, Up/Down or
// Ctrl-P/N for history, Enter to send, Alt-Enter or Ctrl-J for a new line (also a "\" before
// Enter), Ctrl-C to give the line up, Ctrl-D on an empty line to end. Pasted text (bracketed paste)
// is taken as it is, new lines included. Other control keys do nothing.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lr::cli {

enum class LineState { kEditing, kSent, kInterrupted, kEnded };

class LineBuffer {
  public:
    // Earlier lines, oldest first. They may be recalled and edited; the list itself is not changed.
    explicit LineBuffer(std::vector<std::string> history = {}) : history_(std::move(history)) {}

    // Takes bytes as the terminal sends them, in any portions. Bytes after the end of the line are
    // dropped.
    LineState feed(std::string_view bytes);

    LineState state() const { return state_; }
    const std::string& text() const { return text_; }
    std::size_t cursor() const { return cursor_; } // a byte offset, at the start of a character

  private:
    void take(char byte);
    void take_plain(char byte);
    void control(char byte);
    void enter();
    void end_of_escape(std::string_view sequence);
    void insert(std::string_view bytes);
    void erase(std::size_t begin, std::size_t end);
    void recall(int direction);
    std::size_t before(std::size_t at) const;
    std::size_t after(std::size_t at) const;
    std::size_t line_begin() const;
    std::size_t line_end() const;

    std::vector<std::string> history_;
    std::string draft_;         // what was typed before history was recalled
    std::size_t recalled_ = 0;  // from the end; 0: the draft
    std::string text_, escape_; // escape_: an escape sequence that has begun
    std::string character_;     // the first bytes of a character
    std::size_t cursor_ = 0;
    bool pasting_ = false;
    LineState state_ = LineState::kEditing;
};

// The buffer drawn on a terminal `columns` wide: rows after the prompt of the first and the
// indentation of the next, and where the cursor stands.
struct DrawnLine {
    std::vector<std::string> rows;
    std::size_t cursor_row = 0, cursor_column = 0;
};
DrawnLine draw_line(std::string_view prompt, std::string_view indent, std::string_view text,
                    std::size_t cursor, std::size_t columns);

} // namespace lr::cli
