// SPDX-License-Identifier: Apache-2.0
//
// core/log.h: one line per event, and progress of slow work, on stderr.
//
// Thread safe. A line is written whole; control characters inside an event are shown as "\x0a", so
// that no file name or request text can forge a second line or move the cursor. Terminal escapes
// are written only to a terminal, and only to redraw a progress line. Nothing on the decode path
// logs.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>
#include <string_view>

namespace lr {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

struct LogOptions {
    LogLevel least = LogLevel::kInfo; // lower levels are dropped
    std::FILE* stream = stderr;
    // Whether to redraw progress in place; kAuto asks isatty(stream).
    enum class Terminal { kAuto, kYes, kNo } terminal = Terminal::kAuto;
};

// Process-wide; call it before other threads log.
void configure_log(const LogOptions& options);
bool log_enabled(LogLevel level);

// "warning: text\n"; an info event has no prefix.
void log_line(LogLevel level, std::string_view text);

template <typename... Ts> void log_debug(fmt::format_string<Ts...> format, const Ts&... args) {
    if (log_enabled(LogLevel::kDebug))
        log_line(LogLevel::kDebug, fmt::vformat(format, fmt::make_format_args(args...)));
}
template <typename... Ts> void log_info(fmt::format_string<Ts...> format, const Ts&... args) {
    log_line(LogLevel::kInfo, fmt::vformat(format, fmt::make_format_args(args...)));
}
template <typename... Ts> void log_warning(fmt::format_string<Ts...> format, const Ts&... args) {
    log_line(LogLevel::kWarning, fmt::vformat(format, fmt::make_format_args(args...)));
}
template <typename... Ts> void log_error(fmt::format_string<Ts...> format, const Ts&... args) {
    log_line(LogLevel::kError, fmt::vformat(format, fmt::make_format_args(args...)));
}

// Says how far slow work has come. Silent for the first second; then a terminal gets one line that
// is redrawn, anything else a line every five seconds; the destructor closes with the total time.
// With a known total it tells, from 1 % on, the mean rate and how long the rest takes at that.
//   Progress progress("loading", bytes, "bytes");
//   "loading: 1.5 / 4.0 GiB (37 %), 2.1 s, 731.4 MiB/s, 3 s left"
class Progress {
  public:
    // total <= 0: unknown. Unit "bytes" is shown in KiB, MiB or GiB.
    Progress(std::string_view name, std::int64_t total, std::string_view unit,
             double (*now)() = nullptr);
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    // `count` more units are done. Any thread; costs one atomic add and one clock read.
    void advance(std::int64_t count);

  private:
    std::string line(std::int64_t done, double elapsed, bool finished) const;

    const std::string name_;
    const std::string unit_;
    const std::int64_t total_;
    double (*const now_)();
    const double start_;
    std::atomic<std::int64_t> done_ = 0;
    std::atomic<double> next_;
    std::mutex mutex_; // held while a line is written
    bool shown_ = false;
};

} // namespace lr
