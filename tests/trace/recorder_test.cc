// SPDX-License-Identifier: Apache-2.0
#include "core/json.h"
#include "trace/chrome.h"
#include "trace/recorder.h"

#include <gtest/gtest.h>

#include <thread>

namespace lr::trace {
namespace {

Program two_launches() {
    return {{.layer = 3,
             .path = "decode-gdn",
             .nodes = "7",
             .name = "state",
             .bytes = 1000,
             .floor_us = 2},
            {.layer = 3, .path = "decode-gdn", .nodes = "8+9", .name = "norm + quant"}};
}

TEST(Recorder, GivesRowsWithTimesFromTheFirstStart) {
    Recorder recorder(4, {"main", "copy"});
    const std::int32_t program = recorder.add_program(two_launches());
    recorder.record({1'004'500, 1'005'000, 0, program, 1, 1});
    recorder.record({1'000'000, 1'004'000, 0, program, 0, 0});
    const std::vector<Row> rows = recorder.rows();
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_EQ(rows[0].nodes, "7");
    EXPECT_EQ(rows[0].lane, "main");
    EXPECT_EQ(rows[0].start_us, 0);
    EXPECT_EQ(rows[0].duration_us, 4);
    EXPECT_EQ(rows[0].floor_pct, 50);
    EXPECT_EQ(rows[0].bytes, 1000);
    EXPECT_EQ(rows[1].nodes, "8+9");
    EXPECT_EQ(rows[1].start_us, 4.5);
    EXPECT_EQ(rows[1].lane, "copy");
    EXPECT_EQ(rows[1].floor_pct, -1);
}

TEST(Recorder, CountsWhatHasNoRoom) {
    Recorder recorder(3, {"main"});
    recorder.add_program(two_launches());
    for (int i = 0; i < 5; ++i)
        recorder.record({i, i + 1, 0, 0, 0, 0});
    EXPECT_EQ(recorder.rows().size(), 3u);
    EXPECT_EQ(recorder.dropped(), 2u);
    recorder.clear();
    EXPECT_EQ(recorder.rows().size(), 0u);
    EXPECT_EQ(recorder.dropped(), 0u);
}

TEST(Recorder, KeepsWhatSeveralThreadsRecord) {
    Recorder recorder(4000, {"r0", "r1", "r2", "r3"});
    recorder.add_program(two_launches());
    std::vector<std::thread> threads;
    for (std::int32_t t = 0; t < 4; ++t)
        threads.emplace_back([&recorder, t] {
            for (std::int64_t i = 0; i < 1000; ++i)
                recorder.record({i, i + 1, 0, 0, 0, t});
        });
    for (std::thread& thread : threads)
        thread.join();
    EXPECT_EQ(recorder.rows().size(), 4000u);
    EXPECT_EQ(recorder.dropped(), 0u);
}

TEST(Recorder, TraceEventsAreJson) {
    Recorder recorder(4, {"main"});
    recorder.add_program(two_launches());
    recorder.record({1000, 3500, 2, 0, 0, 0});
    const std::string text = to_chrome_json(recorder.rows());
    const auto json = parse_json(text, "trace.json");
    ASSERT_TRUE(json) << json.error().message();
    const JsonArray& events = json->find("traceEvents")->as_array();
    ASSERT_EQ(events.size(), 2u); // a lane's name, and the launch
    EXPECT_EQ(events[1].find("ph")->as_string(), "X");
    EXPECT_EQ(events[1].find("name")->as_string(), "L3.7");
    EXPECT_EQ(events[1].find("dur")->as_double(), 2.5);
    EXPECT_EQ(events[1].find("args")->find("step")->as_int(), 2);
    EXPECT_EQ(events[1].find("args")->find("bytes")->as_int(), 1000);
}

} // namespace
} // namespace lr::trace
