// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/checkpoint.h"
#include "tests/checkpoint/files.h"

#include <gtest/gtest.h>

#include <unistd.h>

namespace lr::checkpoint {
namespace {

constexpr char kIndex[] = "model.safetensors.index.json";
constexpr char kFirst[] = "model-00001-of-00002.safetensors";
constexpr char kSecond[] = "model-00002-of-00002.safetensors";

// A folder with tensors a, b in the first shard and c in the second.
void write_shards(const TempFolder& folder) {
    folder.write(kFirst, small_safetensors({"a", "b"}));
    folder.write(kSecond, small_safetensors({"c"}));
}
std::string index_of(std::string_view weight_map) {
    return fmt::format(R"({{"metadata":{{"total_size":3}},"weight_map":{{{}}}}})", weight_map);
}
std::string good_index() {
    return index_of(fmt::format(R"("c":"{1}","a":"{0}","b":"{0}")", kFirst, kSecond));
}

TEST(Checkpoint, OpensOneFileByItsPathOrItsFolder) {
    const TempFolder folder;
    const std::string path = folder.write("model.safetensors", small_safetensors({"x", "a"}));
    folder.write("config.json", "{}");
    folder.write("adapter.safetensors", "ignored");
    for (const std::string& where : {path, folder.path(), folder.path() + "/"}) {
        const auto checkpoint = Checkpoint::open(where);
        ASSERT_TRUE(checkpoint) << checkpoint.error().message();
        EXPECT_EQ(checkpoint->path(), where);
        ASSERT_EQ(checkpoint->tensors().size(), 2u);
        EXPECT_EQ(checkpoint->tensors()[0].name, "a");
        EXPECT_EQ(checkpoint->total_bytes(), 2);
        EXPECT_EQ(checkpoint->find("x")->data[0], std::byte{0});
        EXPECT_EQ(checkpoint->find("a")->data[0], std::byte{1});
        EXPECT_TRUE(checkpoint->still_intact().ok());
    }
}

TEST(Checkpoint, OpensShardsAndListsTheirTensorsByName) {
    const TempFolder folder;
    write_shards(folder);
    folder.write(kIndex, good_index());
    auto opened = Checkpoint::open(folder.path());
    ASSERT_TRUE(opened) << opened.error().message();
    const Checkpoint checkpoint = std::move(*opened);
    EXPECT_EQ(checkpoint.files().size(), 2u);
    std::string names;
    for (const TensorInfo& tensor : checkpoint.tensors())
        names += tensor.name;
    EXPECT_EQ(names, "abc");
    EXPECT_EQ(checkpoint.total_bytes(), 3);
    EXPECT_EQ(checkpoint.find("b")->data[0], std::byte{1});
    EXPECT_EQ(checkpoint.find("c")->data[0], std::byte{0});
    EXPECT_EQ(checkpoint.find("d"), nullptr);
    EXPECT_TRUE(checkpoint.require("c"));
    expect_error(checkpoint.require("d"), Code::kNotFound,
                 {folder.path(), "expected tensor 'd', which is not there"});
}

TEST(Checkpoint, AnIndexMayNameASingleFile) {
    const TempFolder folder;
    folder.write("model.safetensors", small_safetensors({"a"}));
    folder.write(kIndex, index_of(R"("a":"model.safetensors")"));
    EXPECT_TRUE(Checkpoint::open(folder.path()));
}

TEST(Checkpoint, SaysWhatAFolderLacks) {
    const TempFolder folder;
    expect_error(Checkpoint::open(folder.file("none")), Code::kNotFound,
                 {"none: no such file or folder"});
    expect_error(Checkpoint::open(folder.path()), Code::kNotFound,
                 {"expected model.safetensors or model.safetensors.index.json in the folder"});
    write_shards(folder);
    expect_error(Checkpoint::open(folder.path()), Code::kNotFound,
                 {"model.safetensors.index.json beside its shards", kFirst, kSecond});
    expect_error(Checkpoint::open(folder.write("x.safetensors", "short")), Code::kInvalidFile,
                 {"x.safetensors: expected a header length"});
    std::filesystem::create_directory(folder.file("sub"));
    std::filesystem::create_directory(folder.file("sub/model.safetensors"));
    expect_error(Checkpoint::open(folder.file("sub")), Code::kInvalidArgument,
                 {"sub/model.safetensors: expected a regular file, got a folder"});
}

TEST(Checkpoint, ListsTheMissingShards) {
    const TempFolder folder;
    write_shards(folder);
    std::string map = R"("a":"model-00001-of-00002.safetensors")";
    for (int i = 3; i < 15; ++i)
        map += fmt::format(R"(,"t{0}":"model-{0:05}.safetensors")", i);
    folder.write(kIndex, index_of(map));
    expect_error(Checkpoint::open(folder.path()), Code::kNotFound,
                 {"12 of 13 shards are missing: model-00003.safetensors, model-00004.safetensors",
                  "and 4 more", "download"});
}

TEST(Checkpoint, RefusesALeftoverShard) {
    const TempFolder folder;
    write_shards(folder);
    folder.write(kIndex, good_index());
    folder.write("model-00003-of-00003.safetensors", small_safetensors({"z"}));
    expect_error(Checkpoint::open(folder.path()), Code::kInvalidFile,
                 {kIndex, "does not name model-00003-of-00003.safetensors"});
    std::filesystem::remove(folder.file(kIndex));
    folder.write("model.safetensors", small_safetensors({"z"}));
    expect_error(Checkpoint::open(folder.path()), Code::kNotFound, {"got", kFirst, "without it"});
}

TEST(Checkpoint, RefusesAnIndexThatDisagreesWithItsShards) {
    const TempFolder folder;
    write_shards(folder);
    folder.write(kIndex, index_of(fmt::format(R"("a":"{0}","b":"{0}","c":"{1}","d":"{1}")", kFirst,
                                              kSecond)));
    expect_error(Checkpoint::open(folder.path()), Code::kInvalidFile,
                 {"places tensor 'd' in", kSecond, "which does not hold it"});
    folder.write(kIndex, index_of(fmt::format(R"("a":"{0}","c":"{1}")", kFirst, kSecond)));
    expect_error(Checkpoint::open(folder.path()), Code::kInvalidFile,
                 {kFirst, "holds tensor 'b'", "does not name"});
    folder.write(kIndex,
                 index_of(fmt::format(R"("a":"{1}","b":"{0}","c":"{1}")", kFirst, kSecond)));
    expect_error(Checkpoint::open(folder.path()), Code::kInvalidFile,
                 {"places tensor 'a' in", kSecond});
}

TEST(Checkpoint, RefusesATensorInTwoShards) {
    const TempFolder folder;
    folder.write(kFirst, small_safetensors({"a", "b"}));
    folder.write(kSecond, small_safetensors({"b", "c"}));
    folder.write(kIndex, good_index());
    expect_error(Checkpoint::open(folder.path()), Code::kInvalidFile,
                 {"tensor 'b' is in two shards", kFirst, kSecond});
}

TEST(Checkpoint, RefusesABadIndex) {
    const TempFolder folder;
    write_shards(folder);
    struct Bad {
        std::string text;
        std::initializer_list<std::string_view> fragments;
    };
    const Bad bads[] = {
        {"", {kIndex}},
        {"weights!", {kIndex, ":1:1"}},
        {"[]", {kIndex, "expected an object"}},
        {R"({"weights":{}})", {kIndex, "weight_map"}},
        {R"({"weight_map":["a"]})", {"weight_map: expected an object"}},
        {index_of(""), {"weight_map: expected tensors, got none"}},
        {index_of(R"("a":1)"), {"weight_map.a: expected a string, got 1"}},
        {index_of(R"("a":"x.safetensors","a":"y.safetensors")"), {"\"a\"", "twice"}},
        {index_of(R"("a":"../model.safetensors")"), {"weight_map.a", "plain name"}},
        {index_of(R"("a":"/etc/model.safetensors")"), {"plain name"}},
        {index_of(R"("a":"sub/model.safetensors")"), {"plain name"}},
        {index_of(R"("a":"sub\\model.safetensors")"), {"plain name"}},
        {index_of(R"("a":"model.safetensors\u0000.safetensors")"), {"plain name"}},
        {index_of(R"("a":"..safetensors")"), {"plain name"}},
        {index_of(R"("a":"")"), {"plain name"}},
        {index_of(R"("a":"model.bin")"), {"plain name of a .safetensors file"}},
    };
    for (const Bad& bad : bads) {
        SCOPED_TRACE(bad.text);
        folder.write(kIndex, bad.text);
        expect_error(Checkpoint::open(folder.path()), Code::kInvalidFile, bad.fragments);
    }
}

TEST(Checkpoint, NamesTheShardThatIsDamaged) {
    const TempFolder folder;
    write_shards(folder);
    folder.write(kIndex, good_index());
    const std::string path = folder.file(kSecond);
    const auto checkpoint = Checkpoint::open(folder.path());
    ASSERT_TRUE(checkpoint);
    std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
    expect_error(checkpoint->still_intact(), Code::kInvalidFile, {kSecond, "changed"});
    expect_error(Checkpoint::open(folder.path()), Code::kInvalidFile, {kSecond, "cut short"});
}

} // namespace
} // namespace lr::checkpoint
