// SPDX-License-Identifier: Apache-2.0
#include "core/clock.h"
#include "core/log.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace lr {
namespace {

double g_now = 0;
double fake_clock() {
    return g_now;
}

// Sends the log to memory for one test.
class Log : public testing::Test {
  protected:
    void SetUp() override { capture(LogOptions::Terminal::kNo); }
    void TearDown() override {
        configure_log({});
        std::fclose(stream_);
        std::free(buffer_);
    }

    void capture(LogOptions::Terminal terminal, LogLevel least = LogLevel::kInfo) {
        if (!stream_)
            stream_ = open_memstream(&buffer_, &size_);
        configure_log({least, stream_, terminal});
        g_now = 100;
    }
    std::string text() {
        std::fflush(stream_);
        return {buffer_, size_};
    }

  private:
    char* buffer_ = nullptr;
    std::size_t size_ = 0;
    std::FILE* stream_ = nullptr;
};

TEST_F(Log, WritesOneLinePerEventWithItsLevel) {
    log_info("loaded {} tensors", 3);
    log_warning("slow disk");
    log_error("{}", "gone");
    log_debug("dropped {}", 1);
    EXPECT_EQ(text(), "loaded 3 tensors\nwarning: slow disk\nerror: gone\n");
}

TEST_F(Log, LeastLevelDropsWhatIsBelow) {
    capture(LogOptions::Terminal::kNo, LogLevel::kWarning);
    log_info("no");
    log_warning("yes");
    EXPECT_FALSE(log_enabled(LogLevel::kInfo));
    EXPECT_EQ(text(), "warning: yes\n");
}

TEST_F(Log, ControlCharactersCannotForgeALine) {
    log_info("{}", "name\nerror: forged\x1b[2J\x7f");
    EXPECT_EQ(text(), "name\\x0aerror: forged\\x1b[2J\\x7f\n");
}

TEST_F(Log, LinesOfManyThreadsStayWhole) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([] {
            for (int i = 0; i < 100; ++i)
                log_info("{}", std::string(60, 'x'));
        });
    for (std::thread& thread : threads)
        thread.join();
    const std::string all = text();
    EXPECT_EQ(all.size(), 400u * 61);
    for (std::size_t i = 0; i < all.size(); ++i)
        ASSERT_EQ(all[i], i % 61 == 60 ? '\n' : 'x') << i;
}

TEST_F(Log, ProgressIsSilentForShortWork) {
    {
        Progress progress("loading", 10, "tensors", &fake_clock);
        g_now += 0.9;
        progress.advance(10);
    }
    EXPECT_EQ(text(), "");
}

TEST_F(Log, ProgressWithoutATerminalSpeaksEveryFiveSeconds) {
    {
        Progress progress("loading", 3LL << 30, "bytes", &fake_clock);
        for (int second = 1; second <= 8; ++second) {
            g_now += 1;
            progress.advance(256LL << 20);
        }
    }
    EXPECT_EQ(text(), "loading: 0.2 / 3.0 GiB (8 %), 1.0 s, 256.0 MiB/s, 11 s left\n"
                      "loading: 1.5 / 3.0 GiB (50 %), 6.0 s, 256.0 MiB/s, 6 s left\n"
                      "loading: 2.0 / 3.0 GiB (66 %), 8.0 s, done\n");
}

TEST_F(Log, ProgressOnATerminalRedrawsOneLineAndEventsDoNotTearIt) {
    capture(LogOptions::Terminal::kYes);
    {
        Progress progress("training", 0, "steps", &fake_clock);
        g_now += 2;
        progress.advance(7);
        log_warning("odd");
        g_now += 0.05; // sooner than a redraw
        progress.advance(1);
        g_now += 1;
        progress.advance(1);
    }
    EXPECT_EQ(text(), "training: 7 steps, 2.0 s"
                      "\r\x1b[Kwarning: odd\n"
                      "training: 9 steps, 3.0 s"
                      "\r\x1b[Ktraining: 9 steps, 3.0 s, done\n");
}

TEST(Clock, NeverGoesBackAndAdvances) {
    Stopwatch watch;
    double last = monotonic_seconds();
    for (int i = 0; i < 1000; ++i) {
        const double now = monotonic_seconds();
        ASSERT_GE(now, last);
        last = now;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_GE(watch.lap(), 0.005);
    EXPECT_GE(watch.seconds(), 0);
}

} // namespace
} // namespace lr
