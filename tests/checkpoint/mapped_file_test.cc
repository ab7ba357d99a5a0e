// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/mapped_file.h"
#include "tests/checkpoint/files.h"

#include <gtest/gtest.h>

#include <cstring>
#include <unistd.h>
#include <utility>

namespace lr::checkpoint {
namespace {

// Reads every byte, so that a mapping without a file behind it is touched; volatile, because a sum
// that nobody uses would not be computed.
unsigned touch(const MappedFile& file) {
    unsigned sum = 0;
    for (const volatile std::byte& b : file.bytes())
        sum += std::to_integer<unsigned>(b);
    return sum;
}

TEST(MappedFile, ShowsTheBytesOfTheFile) {
    const TempFolder folder;
    const std::string path = folder.write("a", "abc");
    Result<MappedFile> opened = MappedFile::open(path);
    ASSERT_TRUE(opened) << opened.error().message();
    MappedFile file = std::move(*opened);
    EXPECT_EQ(file.path(), path);
    EXPECT_EQ(file.size(), 3);
    ASSERT_EQ(file.bytes().size(), 3u);
    EXPECT_EQ(std::memcmp(file.bytes().data(), "abc", 3), 0);
    EXPECT_TRUE(file.still_intact().ok());
}

TEST(MappedFile, AcceptsAnEmptyFile) {
    const TempFolder folder;
    const Result<MappedFile> file = MappedFile::open(folder.write("empty", ""));
    ASSERT_TRUE(file);
    EXPECT_EQ(file->size(), 0);
    EXPECT_TRUE(file->bytes().empty());
    EXPECT_TRUE(file->still_intact().ok());
}

TEST(MappedFile, SaysWhatIsWrongWithAPath) {
    const TempFolder folder;
    expect_error(MappedFile::open(folder.file("none")), Code::kNotFound, {"none: no such file"});
    expect_error(MappedFile::open(folder.write("a", "") + "/below"), Code::kNotFound,
                 {"no such file"});
    expect_error(MappedFile::open(folder.path()), Code::kInvalidArgument,
                 {folder.path(), "expected a regular file, got a folder"});
    expect_error(MappedFile::open("/dev/null"), Code::kInvalidArgument,
                 {"expected a regular file, got a special file"});
    std::filesystem::create_symlink("loop", folder.file("loop"));
    expect_error(MappedFile::open(folder.file("loop")), Code::kInternal, {"cannot open the file"});
}

TEST(MappedFile, SaysThatAFileMayNotBeRead) {
    const TempFolder folder;
    const std::string path = folder.write("secret", "abc");
    std::filesystem::permissions(path, std::filesystem::perms::none);
    std::filesystem::permissions(folder.path(), std::filesystem::perms::all);
    const uid_t before = ::geteuid();
    if (before == 0) { // root may read everything, so be somebody else for a moment
        ASSERT_EQ(::seteuid(65534), 0);
    }
    const Result<MappedFile> file = MappedFile::open(path);
    ASSERT_EQ(::seteuid(before), 0);
    expect_error(file, Code::kInternal, {"secret: cannot open the file: Permission denied"});
}

TEST(MappedFile, NoticesAFileThatIsCutAfterOpening) {
    const TempFolder folder;
    const std::string path = folder.write("a", std::string(10000, 'x'));
    const Result<MappedFile> file = MappedFile::open(path);
    ASSERT_TRUE(file);
    EXPECT_EQ(touch(*file), 10000u * 'x');
    ASSERT_EQ(::truncate(path.c_str(), 100), 0);
    expect_error(file->still_intact(), Code::kInvalidFile,
                 {path, "changed while it was in use", "expected 10000 bytes as at open, got 100"});
}

TEST(MappedFile, NoticesAFileThatIsRewrittenAfterOpening) {
    const TempFolder folder;
    const std::string path = folder.write("a", "abc");
    const Result<MappedFile> file = MappedFile::open(path);
    ASSERT_TRUE(file);
    std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() +
                                               std::chrono::seconds(2));
    expect_error(file->still_intact(), Code::kInvalidFile, {"it was written to after it was"});
}

TEST(MappedFile, StaysWithTheOldFileWhenAnotherTakesItsName) {
    const TempFolder folder;
    const std::string path = folder.write("a", "abc");
    const Result<MappedFile> file = MappedFile::open(path);
    ASSERT_TRUE(file);
    std::filesystem::rename(folder.write("b", "something else"), path);
    EXPECT_TRUE(file->still_intact().ok());
    EXPECT_EQ(touch(*file), unsigned{'a' + 'b' + 'c'});
}

TEST(MappedFileDeathTest, ReadingACutFileNamesItAndExitsWhenTheHandlerIsInstalled) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const TempFolder folder;
    const std::string path = folder.write("weights", std::string(100000, 'x'));
    const std::string other = folder.write("other", std::string(100000, 'x'));
    const Result<MappedFile> first = MappedFile::open(other);
    const Result<MappedFile> file = MappedFile::open(path);
    ASSERT_TRUE(first && file);
    EXPECT_EXIT(
        {
            install_truncated_file_handler();
            if (::truncate(path.c_str(), 0) != 0)
                std::_Exit(3);
            touch(*file);
            std::_Exit(2);
        },
        testing::ExitedWithCode(1), "liverow: error: .*/weights: the file was cut short");
}

TEST(MappedFileDeathTest, ASignalFromElsewhereKeepsItsDefaultAction) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            install_truncated_file_handler();
            const TempFolder folder;
            { const auto file = MappedFile::open(folder.write("a", std::string(9000, 'x'))); }
            ::raise(SIGBUS);
            std::_Exit(2);
        },
        testing::KilledBySignal(SIGBUS), "^$");
}

} // namespace
} // namespace lr::checkpoint
