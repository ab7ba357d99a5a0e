// SPDX-License-Identifier: Apache-2.0
#include "core/log.h"

#include "core/clock.h"

#include <unistd.h>

namespace lr {
namespace {

constexpr double kQuietSeconds = 1.0;     // work shorter than this needs no progress
constexpr double kRedrawSeconds = 0.1;    // terminal: as often as one can read
constexpr double kRepeatSeconds = 5.0;    // log file: enough to see that it lives
constexpr char kClearLine[] = "\r\x1b[K"; // carriage return, erase to the end of the line

struct Sink {
    std::mutex mutex;
    std::FILE* stream = stderr;
    bool terminal = isatty(STDERR_FILENO) == 1;
    bool progress_on_line = false; // a progress line without its newline is on the screen
    std::atomic<LogLevel> least = LogLevel::kInfo;
};

Sink& sink() {
    static Sink instance;
    return instance;
}

const char* prefix(LogLevel level) {
    switch (level) {
    case LogLevel::kDebug:
        return "debug: ";
    case LogLevel::kInfo:
        return "";
    case LogLevel::kWarning:
        return "warning: ";
    case LogLevel::kError:
        return "error: ";
    }
    return "";
}

std::string printable(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x20 || byte == 0x7f)
            out += fmt::format("\\x{:02x}", byte);
        else
            out += c;
    }
    return out;
}

enum class LineEnd { kNewline, kStay };

void write_line(std::string_view text, LineEnd line_end) {
    Sink& out = sink();
    const std::lock_guard lock(out.mutex);
    std::string line;
    if (out.progress_on_line)
        line = kClearLine;
    line += text;
    if (line_end == LineEnd::kNewline)
        line += '\n';
    out.progress_on_line = line_end == LineEnd::kStay;
    std::fwrite(line.data(), 1, line.size(), out.stream);
    std::fflush(out.stream);
}

std::string amount(std::int64_t done, std::int64_t total, const std::string& unit) {
    double scale = 1;
    std::string shown_unit = unit;
    int digits = 0;
    if (unit == "bytes") {
        const std::int64_t largest = total > 0 ? total : done;
        const int step = largest >= (1LL << 30) ? 30 : largest >= (1LL << 20) ? 20 : 10;
        scale = 1.0 / static_cast<double>(1LL << step);
        shown_unit = step == 30 ? "GiB" : step == 20 ? "MiB" : "KiB";
        digits = 1;
    }
    const double shown = static_cast<double>(done) * scale;
    if (total <= 0)
        return fmt::format("{:.{}f} {}", shown, digits, shown_unit);
    return fmt::format("{:.{}f} / {:.{}f} {} ({} %)", shown, digits,
                       static_cast<double>(total) * scale, digits, shown_unit, done * 100 / total);
}

// "1.2 GiB", or "310 tokens".
std::string rate(std::int64_t done, double elapsed, const std::string& unit) {
    const auto each_second = static_cast<std::int64_t>(static_cast<double>(done) / elapsed);
    return amount(each_second, 0, unit);
}

} // namespace

void configure_log(const LogOptions& options) {
    Sink& out = sink();
    const std::lock_guard lock(out.mutex);
    out.least = options.least;
    out.stream = options.stream;
    out.terminal = options.terminal == LogOptions::Terminal::kAuto
                       ? isatty(fileno(options.stream)) == 1
                       : options.terminal == LogOptions::Terminal::kYes;
    out.progress_on_line = false;
}

bool log_enabled(LogLevel level) {
    return level >= sink().least.load(std::memory_order_relaxed);
}

void log_line(LogLevel level, std::string_view text) {
    if (log_enabled(level))
        write_line(prefix(level) + printable(text), LineEnd::kNewline);
}

Progress::Progress(std::string_view name, std::int64_t total, std::string_view unit,
                   double (*now)())
    : name_(printable(name)), unit_(unit), total_(total), now_(now ? now : &monotonic_seconds),
      start_(now_()), next_(start_ + kQuietSeconds) {}

Progress::~Progress() {
    if (shown_)
        write_line(line(done_, now_() - start_, true), LineEnd::kNewline);
}

void Progress::advance(std::int64_t count) {
    const std::int64_t done = done_.fetch_add(count) + count;
    const double now = now_();
    if (now < next_.load(std::memory_order_relaxed) || !log_enabled(LogLevel::kInfo))
        return;
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock() || now < next_.load(std::memory_order_relaxed))
        return;
    const bool terminal = sink().terminal;
    next_ = now + (terminal ? kRedrawSeconds : kRepeatSeconds);
    shown_ = true;
    write_line(line(done, now - start_, false), terminal ? LineEnd::kStay : LineEnd::kNewline);
}

std::string Progress::line(std::int64_t done, double elapsed, bool finished) const {
    std::string text = fmt::format("{}: {}, {:.1f} s", name_, amount(done, total_, unit_), elapsed);
    if (finished)
        return text + ", done";
    if (done < total_ && done * 100 >= total_) // before, the rate says little
        text +=
            fmt::format(", {}/s, {:.0f} s left", rate(done, elapsed, unit_),
                        static_cast<double>(total_ - done) * elapsed / static_cast<double>(done));
    return text;
}

} // namespace lr
