// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal.h"

#include "core/check.h"
#include "text/unicode.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

namespace lr::cli {
namespace {

std::atomic<bool> interrupt_flag = false;
static_assert(std::atomic<bool>::is_always_lock_free); // set in a signal handler
struct sigaction old_interrupt;

bool dumb_terminal() {
    const char* term = std::getenv("TERM");
    return term == nullptr || std::strcmp(term, "dumb") == 0;
}

// The terminal gives keys one by one and draws nothing itself, until this ends.
class RawMode {
  public:
    RawMode() {
        if (tcgetattr(STDIN_FILENO, &saved_) != 0)
            return;
        termios raw = saved_;
        raw.c_iflag &= ~static_cast<tcflag_t>(BRKINT | ICRNL | INPCK | ISTRIP | IXON);
        raw.c_lflag &= ~static_cast<tcflag_t>(ECHO | ICANON | IEXTEN | ISIG);
        raw.c_cc[VMIN] = 1;
        raw.c_cc[VTIME] = 0;
        active_ = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
        if (active_)
            std::fputs("\x1b[?2004h", stdout); // pastes come in brackets
    }
    ~RawMode() {
        if (!active_)
            return;
        std::fputs("\x1b[?2004l", stdout);
        std::fflush(stdout);
        tcsetattr(STDIN_FILENO, TCSADRAIN, &saved_);
    }
    RawMode(const RawMode&) = delete;
    RawMode& operator=(const RawMode&) = delete;
    bool active() const { return active_; }

  private:
    termios saved_{};
    bool active_ = false;
};

std::size_t terminal_columns() {
    winsize size{};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 8)
        return size.ws_col;
    return 80;
}

// Draws the buffer over what it drew before.
class Screen {
  public:
    explicit Screen(std::string_view prompt) : prompt_(prompt), indent_(prompt.size(), ' ') {}

    void draw(const LineBuffer& line, std::size_t cursor) {
        const DrawnLine drawn =
            draw_line(prompt_, indent_, line.text(), cursor, terminal_columns());
        std::string out = up(cursor_row_) + "\r\x1b[J";
        for (std::size_t row = 0; row < drawn.rows.size(); ++row)
            out += (row > 0 ? "\r\n" : "") + drawn.rows[row];
        out += up(drawn.rows.size() - 1 - drawn.cursor_row) + "\r";
        if (drawn.cursor_column > 0)
            out += "\x1b[" + std::to_string(drawn.cursor_column) + "C";
        cursor_row_ = drawn.cursor_row;
        std::fwrite(out.data(), 1, out.size(), stdout);
        std::fflush(stdout);
    }

  private:
    static std::string up(std::size_t rows) {
        return rows == 0 ? std::string() : "\x1b[" + std::to_string(rows) + "A";
    }

    std::string_view prompt_;
    std::string indent_;
    std::size_t cursor_row_ = 0;
};

TypedLine edit_line(std::string_view prompt, const std::vector<std::string>& history) {
    LineBuffer line(history);
    Screen screen(prompt);
    screen.draw(line, 0);
    LineState state = LineState::kEditing;
    while (state == LineState::kEditing) {
        char bytes[256];
        const ssize_t count = read(STDIN_FILENO, bytes, sizeof bytes);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return {LineState::kEnded, ""};
        state = line.feed({bytes, static_cast<std::size_t>(count)});
        screen.draw(line, state == LineState::kEditing ? line.cursor() : line.text().size());
    }
    std::fputs(state == LineState::kInterrupted ? "^C\r\n" : "\r\n", stdout);
    return {state, state == LineState::kSent ? line.text() : std::string()};
}

TypedLine plain_line() {
    std::string text, part;
    bool any = false;
    while (std::getline(std::cin, part)) {
        any = true;
        const bool more = !part.empty() && part.back() == '\\';
        text += part;
        if (!more)
            break;
        text.back() = '\n';
    }
    if (!std::cin && InterruptGuard::interrupted()) { // Ctrl-C ended the read, not the input
        std::cin.clear();
        std::clearerr(stdin);
        InterruptGuard::clear();
        return {LineState::kInterrupted, ""};
    }
    return {any ? LineState::kSent : LineState::kEnded, text};
}

} // namespace

Styles stdout_styles() {
    const char* no_color = std::getenv("NO_COLOR");
    if (isatty(STDOUT_FILENO) != 1 || dumb_terminal() || (no_color != nullptr && *no_color != '\0'))
        return {};
    return {"\x1b[2m", "\x1b[0m"};
}

std::string for_stdout(std::string_view rest) {
    static const bool terminal = isatty(STDOUT_FILENO) == 1;
    if (!terminal)
        return std::string(rest);
    std::string out;
    while (!rest.empty()) {
        const text::Utf8Step step = text::step_utf8(rest);
        const std::string_view part = rest.substr(0, static_cast<std::size_t>(step.length));
        const bool whole = step.kind == text::Utf8Step::Kind::kCharacter;
        const bool control = whole && (step.code_point < 0x20 || step.code_point == 0x7F ||
                                       (step.code_point >= 0x80 && step.code_point < 0xA0));
        if (control && part != "\n" && part != "\t")
            out += fmt::format("\\x{:02X}", static_cast<unsigned>(step.code_point));
        else
            out += part;
        rest.remove_prefix(part.size());
    }
    return out;
}

Status print_out(std::string_view text) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0)
        return {};
    return fail(Code::kInternal, "standard output: cannot be written: {}", std::strerror(errno));
}

InterruptGuard::InterruptGuard() {
    interrupt_flag = false;
    struct sigaction action {};
    action.sa_handler = [](int) { interrupt_flag = true; };
    sigemptyset(&action.sa_mask);
    LR_CHECK_EQ(sigaction(SIGINT, &action, &old_interrupt), 0);
}

InterruptGuard::~InterruptGuard() {
    sigaction(SIGINT, &old_interrupt, nullptr);
}

bool InterruptGuard::interrupted() {
    return interrupt_flag;
}

void InterruptGuard::clear() {
    interrupt_flag = false;
}

TypedLine read_line(std::string_view prompt, const std::vector<std::string>& history) {
    if (isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1 && !dumb_terminal()) {
        const RawMode raw;
        if (raw.active())
            return edit_line(prompt, history);
    }
    return plain_line();
}

} // namespace lr::cli
