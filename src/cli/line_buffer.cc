// SPDX-License-Identifier: Apache-2.0
#include "cli/line_buffer.h"

#include "text/display_width.h"
#include "text/unicode.h"

#include <algorithm>
#include <cctype>

namespace lr::cli {
namespace {

constexpr char kEscape = 0x1b;
constexpr std::size_t kLongestEscape = 16; // longer ones are of no key that we know

constexpr char key(char letter) {
    return static_cast<char>(letter & 0x1f);
}

// "\x1b[" parameters letter, "\x1bO" letter, or "\x1b" and one other byte.
bool escape_complete(std::string_view sequence) {
    if (sequence.size() < 2)
        return false;
    if (sequence[1] != '[' && sequence[1] != 'O')
        return true;
    const char last = sequence.back();
    return sequence.size() > 2 && last >= 0x40 && last <= 0x7e;
}

} // namespace

LineState LineBuffer::feed(std::string_view bytes) {
    for (char byte : bytes)
        if (state_ == LineState::kEditing)
            take(byte);
    return state_;
}

void LineBuffer::take(char byte) {
    if (escape_.empty() && byte != kEscape)
        return take_plain(byte);
    escape_ += byte;
    if (!escape_complete(escape_) && escape_.size() < kLongestEscape)
        return;
    const std::string sequence = std::move(escape_);
    escape_.clear();
    end_of_escape(sequence);
}

void LineBuffer::take_plain(char byte) {
    const auto value = static_cast<unsigned char>(byte);
    if ((value & 0xc0) != 0x80)
        character_.clear(); // one that was cut short
    if (pasting_ && (byte == '\r' || byte == '\n' || byte == '\t'))
        return insert(byte == '\r' ? "\n" : std::string_view(&byte, 1));
    if (value < 0x20 || value == 0x7f)
        return control(byte);
    // A character arrives byte by byte and is taken when it is whole; what is none is dropped.
    character_ += byte;
    const text::Utf8Step step = text::step_utf8(character_);
    if (step.kind == text::Utf8Step::Kind::kCharacter)
        insert(character_);
    if (step.kind != text::Utf8Step::Kind::kTruncated)
        character_.clear();
}

void LineBuffer::control(char byte) {
    if (pasting_)
        return; // pasted control characters are nobody's keys
    switch (byte) {
    case '\r':
        return enter();
    case '\n':
        return insert("\n");
    case 0x7f:
    case key('H'):
        return erase(before(cursor_), cursor_);
    case key('A'):
        cursor_ = line_begin();
        return;
    case key('E'):
        cursor_ = line_end();
        return;
    case key('B'):
        cursor_ = before(cursor_);
        return;
    case key('F'):
        cursor_ = after(cursor_);
        return;
    case key('K'):
        return erase(cursor_, line_end());
    case key('U'):
        return erase(line_begin(), cursor_);
    case key('W'): {
        std::size_t begin = cursor_;
        while (begin > 0 && std::isspace(static_cast<unsigned char>(text_[begin - 1])))
            --begin;
        while (begin > 0 && !std::isspace(static_cast<unsigned char>(text_[begin - 1])))
            --begin;
        return erase(begin, cursor_);
    }
    case key('P'):
        return recall(1);
    case key('N'):
        return recall(-1);
    case key('C'):
        state_ = LineState::kInterrupted;
        return;
    case key('D'):
        if (text_.empty())
            state_ = LineState::kEnded;
        else
            erase(cursor_, after(cursor_));
        return;
    default:
        return;
    }
}

void LineBuffer::enter() {
    if (cursor_ > 0 && text_[cursor_ - 1] == '\\') {
        text_[cursor_ - 1] = '\n';
        return;
    }
    state_ = LineState::kSent;
}

void LineBuffer::end_of_escape(std::string_view sequence) {
    const std::string_view name = sequence.substr(1);
    if (name == "[200~")
        pasting_ = true;
    else if (name == "[201~")
        pasting_ = false;
    else if (pasting_)
        return;
    else if (name == "\r" || name == "\n")
        insert("\n");
    else if (name == "[D" || name == "OD")
        cursor_ = before(cursor_);
    else if (name == "[C" || name == "OC")
        cursor_ = after(cursor_);
    else if (name == "[A" || name == "OA")
        recall(1);
    else if (name == "[B" || name == "OB")
        recall(-1);
    else if (name == "[H" || name == "OH" || name == "[1~")
        cursor_ = line_begin();
    else if (name == "[F" || name == "OF" || name == "[4~")
        cursor_ = line_end();
    else if (name == "[3~")
        erase(cursor_, after(cursor_));
}

void LineBuffer::insert(std::string_view bytes) {
    text_.insert(cursor_, bytes);
    cursor_ += bytes.size();
}

void LineBuffer::erase(std::size_t begin, std::size_t end) {
    text_.erase(begin, end - begin);
    cursor_ = begin;
}

void LineBuffer::recall(int direction) {
    if ((direction > 0 && recalled_ == history_.size()) || (direction < 0 && recalled_ == 0))
        return;
    if (recalled_ == 0)
        draft_ = text_;
    recalled_ += static_cast<std::size_t>(direction);
    text_ = recalled_ == 0 ? draft_ : history_[history_.size() - recalled_];
    cursor_ = text_.size();
}

std::size_t LineBuffer::before(std::size_t at) const {
    if (at > 0)
        --at;
    while (at > 0 && (static_cast<unsigned char>(text_[at]) & 0xc0) == 0x80)
        --at;
    return at;
}

std::size_t LineBuffer::after(std::size_t at) const {
    return at + text::character_bytes(std::string_view(text_).substr(at));
}

std::size_t LineBuffer::line_begin() const {
    return cursor_ == 0 ? 0 : text_.rfind('\n', cursor_ - 1) + 1; // npos + 1 is 0
}

std::size_t LineBuffer::line_end() const {
    return std::min(text_.find('\n', cursor_), text_.size());
}

DrawnLine draw_line(std::string_view prompt, std::string_view indent, std::string_view text,
                    std::size_t cursor, std::size_t columns) {
    DrawnLine drawn;
    std::size_t column = 0;
    const auto begin_row = [&](std::string_view margin) {
        drawn.rows.emplace_back(margin);
        column = 0;
        for (std::size_t at = 0; at < margin.size(); at += text::character_bytes(margin.substr(at)))
            column += static_cast<std::size_t>(text::character_columns(margin.substr(at)));
    };
    begin_row(prompt);
    for (std::size_t at = 0; at <= text.size();) {
        const std::string_view rest = text.substr(at);
        const std::size_t bytes = std::max<std::size_t>(1, text::character_bytes(rest));
        const bool newline = !rest.empty() && rest.front() == '\n';
        const auto width =
            newline ? 0 : static_cast<std::size_t>(std::max(0, text::character_columns(rest)));
        // The cursor needs a column of its own, also behind the last character.
        if (column + std::max<std::size_t>(width, at == cursor ? 1 : 0) > columns)
            begin_row("");
        if (at == cursor) {
            drawn.cursor_row = drawn.rows.size() - 1;
            drawn.cursor_column = column;
        }
        if (newline) {
            begin_row(indent);
        } else if (!rest.empty()) {
            const auto byte = static_cast<unsigned char>(rest.front());
            drawn.rows.back() += byte < 0x20 ? std::string_view(" ") : rest.substr(0, bytes);
            column += byte < 0x20 ? 1 : width;
        }
        at += bytes;
    }
    return drawn;
}

} // namespace lr::cli
