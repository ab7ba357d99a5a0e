// SPDX-License-Identifier: Apache-2.0
//
// tests/cli/command.h: one command line, run in this process.
#pragma once

#include "cli/program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace lr::cli {

struct Outcome {
    int status;
    std::string out, err;
};

inline Outcome run(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "liverow");
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int status = run_program(static_cast<int>(arguments.size()), arguments.data());
    std::string out = testing::internal::GetCapturedStdout();
    return {status, std::move(out), testing::internal::GetCapturedStderr()};
}

// One line on stderr that holds every fragment; nothing on stdout.
inline void expect_refused(const Outcome& outcome, int status,
                           const std::vector<std::string>& fragments) {
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    for (const std::string& fragment : fragments)
        EXPECT_NE(outcome.err.find(fragment), std::string::npos)
            << "expected \"" << fragment << "\" in: " << outcome.err;
    EXPECT_LE(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 2) << outcome.err;
}

} // namespace lr::cli
