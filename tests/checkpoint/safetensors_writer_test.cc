// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/checkpoint.h"
#include "checkpoint/safetensors_writer.h"
#include "tests/checkpoint/files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <unistd.h>

namespace lr::checkpoint {
namespace {

std::vector<std::byte> pattern(std::int64_t bytes, int start) {
    std::vector<std::byte> out(static_cast<std::size_t>(bytes));
    for (std::size_t i = 0; i < out.size(); ++i)
        out[i] = static_cast<std::byte>(static_cast<std::size_t>(start) + i * 7);
    return out;
}

// Every tensor's pattern, in chunks of `chunk` bytes.
template <typename Writer>
void write_all(Writer& writer, const std::vector<TensorSpec>& specs, std::size_t chunk) {
    for (std::size_t t = 0; t < specs.size(); ++t) {
        const auto data = pattern(specs[t].bytes(), static_cast<int>(t));
        for (std::size_t at = 0; at < data.size(); at += chunk) {
            const auto part = std::span(data).subspan(at, std::min(chunk, data.size() - at));
            ASSERT_TRUE(writer.append(specs[t].name, part).ok());
        }
    }
}

void expect_tensors(const Checkpoint& checkpoint, const std::vector<TensorSpec>& specs) {
    ASSERT_EQ(checkpoint.tensors().size(), specs.size());
    for (std::size_t t = 0; t < specs.size(); ++t) {
        const TensorInfo* tensor = checkpoint.find(specs[t].name);
        ASSERT_NE(tensor, nullptr) << specs[t].name;
        EXPECT_EQ(tensor->dtype, specs[t].dtype);
        EXPECT_EQ(tensor->shape, specs[t].shape);
        const auto data = pattern(specs[t].bytes(), static_cast<int>(t));
        ASSERT_EQ(tensor->bytes, static_cast<std::int64_t>(data.size()));
        EXPECT_TRUE(std::equal(data.begin(), data.end(), tensor->data)) << specs[t].name;
    }
}

const std::vector<TensorSpec> kSpecs = {
    {"f32", DType::kF32, {3}},           {"bf16", DType::kBF16, {2, 3}},
    {"empty", DType::kF32, {0, 4}},      {"f16", DType::kF16, {1, 1, 5}},
    {"e4m3", DType::kE4M3, {7}},         {"e2m1", DType::kE2M1, {2, 2}},
    {"ue8m0", DType::kUE8M0, {3}},       {"u8", DType::kU8, {1}},
    {"i32", DType::kI32, {2}},           {"\"quoted\\\" ü", DType::kI64, {}},
    {"last and empty", DType::kU8, {0}},
};

TEST(SafetensorsWriter, WritesWhatTheReaderReads) {
    for (std::size_t chunk : {std::size_t{1}, std::size_t{5}, std::size_t{1000}}) {
        const TempFolder folder;
        const std::string path = folder.file("model.safetensors");
        auto writer = SafetensorsWriter::create(path, kSpecs, {{"format", "pt"}, {"q\"", "\n"}});
        ASSERT_TRUE(writer) << writer.error().message();
        write_all(*writer, kSpecs, chunk);
        EXPECT_FALSE(std::filesystem::exists(path)) << "not before it is complete";
        ASSERT_TRUE(writer->finish(true).ok());
        EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
        const auto checkpoint = Checkpoint::open(path);
        ASSERT_TRUE(checkpoint) << checkpoint.error().message();
        expect_tensors(*checkpoint, kSpecs);
        const Metadata& metadata = checkpoint->files()[0].metadata();
        EXPECT_EQ(metadata, (Metadata{{"format", "pt"}, {"q\"", "\n"}}));
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(checkpoint->find("f32")->data) % 8, 0u);
    }
}

TEST(SafetensorsWriter, SortedForAlignmentEveryTensorIsAligned) {
    std::vector<TensorSpec> specs = kSpecs;
    sort_for_alignment(specs);
    EXPECT_EQ(specs.front().dtype, DType::kI64);
    EXPECT_EQ(specs[1].name, "f32");
    EXPECT_EQ(specs[2].name, "empty") << "the order among equals stays";
    const TempFolder folder;
    const std::string path = folder.file("f.safetensors");
    auto writer = SafetensorsWriter::create(path, specs);
    ASSERT_TRUE(writer);
    write_all(*writer, specs, 100);
    ASSERT_TRUE(writer->finish().ok());
    const auto checkpoint = Checkpoint::open(path);
    ASSERT_TRUE(checkpoint);
    expect_tensors(*checkpoint, specs);
    for (const TensorInfo& tensor : checkpoint->tensors())
        EXPECT_TRUE(tensor.aligned()) << tensor.name;
}

TEST(SafetensorsWriter, AnUnfinishedFileLeavesNothing) {
    const TempFolder folder;
    const std::string path = folder.file("f");
    {
        auto writer = SafetensorsWriter::create(path, kSpecs);
        ASSERT_TRUE(writer);
        EXPECT_TRUE(std::filesystem::exists(path + ".partial"));
        const auto moved = std::move(*writer);
    }
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(SafetensorsWriter, RefusesBadNamesAndPlaces) {
    const TempFolder folder;
    const TensorSpec a{"a", DType::kU8, {1}};
    expect_error(SafetensorsWriter::create(folder.file("f"), {a, a}), Code::kInvalidArgument,
                 {"tensor 'a' is declared twice"});
    for (const char* name : {"", "__metadata__"})
        expect_error(SafetensorsWriter::create(folder.file("f"), {{name, DType::kU8, {1}}}),
                     Code::kInvalidArgument, {"expected a tensor name"});
    expect_error(SafetensorsWriter::create(folder.file("none/f"), {a}), Code::kInternal,
                 {"none/f: cannot create the file: No such file"});
    expect_error(ShardedWriter::create(folder.path(), {a, a}, {}), Code::kInvalidArgument,
                 {"declared twice"});
}

TEST(SafetensorsWriter, ReportsAFullDisk) {
    if (!std::filesystem::exists("/dev/full"))
        GTEST_SKIP() << "no /dev/full here";
    const TempFolder folder;
    std::filesystem::create_symlink("/dev/full", folder.file("f.partial"));
    expect_error(SafetensorsWriter::create(folder.file("f"), {{"a", DType::kU8, {1}}}),
                 Code::kInternal, {"f: cannot write to the file: No space left on device"});
}

TEST(SafetensorsWriterDeathTest, StopsOnBytesThatAreNotTheNext) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const TempFolder folder;
    const std::vector<TensorSpec> specs = {{"a", DType::kU8, {2}}, {"b", DType::kU8, {1}}};
    auto writer = SafetensorsWriter::create(folder.file("f"), specs);
    ASSERT_TRUE(writer);
    const std::array<std::byte, 3> three{};
    EXPECT_DEATH((void)writer->append("b", std::span(three).first(1)), "tensor == spec.name");
    EXPECT_DEATH((void)writer->append("a", three), "spec.bytes");
    EXPECT_DEATH((void)writer->finish(), "specs.size");
}

TEST(ShardedWriter, SplitsAtTheLimitAndWritesTheIndex) {
    const TempFolder folder;
    const std::vector<TensorSpec> specs = {
        {"a", DType::kU8, {6}}, {"b", DType::kU8, {4}},  {"none", DType::kU8, {0}},
        {"c", DType::kU8, {5}}, {"d", DType::kU8, {50}}, {"e", DType::kU8, {1}},
    };
    auto writer = ShardedWriter::create(
        folder.path(), specs, {.max_shard_bytes = 10, .sync = false, .metadata = {{"k", "v"}}});
    ASSERT_TRUE(writer) << writer.error().message();
    EXPECT_EQ(writer->shard_names().size(), 4u);
    EXPECT_EQ(writer->shard_names()[3], "model-00004-of-00004.safetensors");
    write_all(*writer, specs, 3);
    EXPECT_FALSE(std::filesystem::exists(folder.file("model.safetensors.index.json")));
    ASSERT_TRUE(writer->finish().ok());
    const auto checkpoint = Checkpoint::open(folder.path());
    ASSERT_TRUE(checkpoint) << checkpoint.error().message();
    expect_tensors(*checkpoint, specs);
    ASSERT_EQ(checkpoint->files().size(), 4u);
    EXPECT_EQ(checkpoint->files()[0].tensors().size(), 3u) << "a, b and the empty one";
    EXPECT_EQ(checkpoint->files()[2].tensors()[0].name, "d") << "larger than the limit, alone";
    EXPECT_EQ(checkpoint->files()[3].metadata(), (Metadata{{"k", "v"}}));
    EXPECT_EQ(checkpoint->total_bytes(), 66);
}

TEST(ShardedWriter, WritesOneFileWithoutIndexWhenItFits) {
    const TempFolder folder;
    const std::vector<TensorSpec> specs = {{"a", DType::kU8, {6}}, {"b", DType::kF32, {4}}};
    auto writer = ShardedWriter::create(folder.path(), specs, {.max_shard_bytes = 22});
    ASSERT_TRUE(writer);
    EXPECT_EQ(writer->shard_names(), std::vector<std::string>{"model.safetensors"});
    write_all(*writer, specs, 100);
    ASSERT_TRUE(writer->finish().ok());
    const auto checkpoint = Checkpoint::open(folder.path());
    ASSERT_TRUE(checkpoint);
    expect_tensors(*checkpoint, specs);
}

TEST(ShardedWriter, WritesShardsThatHoldEmptyTensorsAlone) {
    const TempFolder folder;
    const std::vector<TensorSpec> specs = {{"a", DType::kU8, {0}}};
    auto writer = ShardedWriter::create(folder.path(), specs, {});
    ASSERT_TRUE(writer);
    ASSERT_TRUE(writer->finish().ok());
    EXPECT_TRUE(Checkpoint::open(folder.path()));
}

} // namespace
} // namespace lr::checkpoint
