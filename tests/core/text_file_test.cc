// SPDX-License-Identifier: Apache-2.0
#include "core/text_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

namespace lr {
namespace {

TEST(ReadTextFile, ReadsEveryByte) {
    const std::string path = testing::TempDir() + "liverow-text-" + std::to_string(::getpid());
    const std::string text("a\0b\r\n\xff", 6);
    std::ofstream(path, std::ios::binary) << text;
    EXPECT_EQ(*read_text_file(path), text);
    std::ofstream(path, std::ios::trunc);
    EXPECT_EQ(*read_text_file(path), "");
    std::filesystem::remove(path);
}

TEST(ReadTextFile, RefusesWhatIsNoRegularFileWithoutWaiting) {
    const std::string folder = testing::TempDir();
    const auto of_folder = read_text_file(folder);
    ASSERT_FALSE(of_folder);
    EXPECT_EQ(of_folder.error().message(), folder + ": expected a regular file, got a folder");
    const std::string pipe = folder + "liverow-pipe-" + std::to_string(::getpid());
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    const auto of_pipe = read_text_file(pipe);
    std::filesystem::remove(pipe);
    ASSERT_FALSE(of_pipe);
    EXPECT_EQ(of_pipe.error().message(), pipe + ": expected a regular file, got a special file");
    const auto missing = read_text_file(folder + "liverow-no-such-file");
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code(), Code::kNotFound);
    EXPECT_NE(missing.error().message().find("No such file"), std::string::npos);
}

} // namespace
} // namespace lr
