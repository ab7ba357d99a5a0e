// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/safetensors.h"
#include "tests/checkpoint/files.h"

#include <gtest/gtest.h>

#include <cstring>
#include <unistd.h>

namespace lr::checkpoint {
namespace {

struct BadFile {
    const char* what;
    std::string content;
    Code code;
    std::initializer_list<std::string_view> fragments;
};

// A file with the tensor "a" given by the fields, over `data`.
std::string one(std::string_view fields, std::string_view data = "") {
    return safetensors(fmt::format(R"({{"a":{{{}}}}})", fields), data);
}

std::string with_length(std::uint64_t length, std::string_view rest) {
    std::string text(8, '\0');
    std::memcpy(text.data(), &length, 8);
    return text.append(rest);
}

void expect_refused(std::initializer_list<BadFile> bad_files) {
    const TempFolder folder;
    for (const BadFile& bad : bad_files) {
        SCOPED_TRACE(bad.what);
        const std::string path = folder.write("bad.safetensors", bad.content);
        const auto file = SafetensorsFile::open(path);
        expect_error(file, bad.code, bad.fragments);
        expect_error(file, bad.code, {path});
    }
}

TEST(Safetensors, RefusesABadHeaderLength) {
    expect_refused({
        {"empty file",
         "",
         Code::kInvalidFile,
         {"expected a header length of 8 bytes, got a file of 0 bytes"}},
        {"seven bytes", "1234567", Code::kInvalidFile, {"got a file of 7 bytes"}},
        {"length zero",
         with_length(0, "{}"),
         Code::kInvalidFile,
         {"expected a header of 1 to 100000000 bytes, got a length of 0"}},
        {"length just above the limit",
         with_length(100'000'001, "{}"),
         Code::kInvalidFile,
         {"got a length of 100000001", "not a safetensors file"}},
        {"length of all ones",
         with_length(~std::uint64_t{0}, "{}"),
         Code::kInvalidFile,
         {"got a length of 18446744073709551615"}},
        {"length past the end",
         with_length(3, "{}"),
         Code::kInvalidFile,
         {"expected a header of 3 bytes, but the file has only 10 bytes", "cut short"}},
    });
}

TEST(Safetensors, RefusesAHeaderThatIsNotStrictJson) {
    std::string deep = R"({"__metadata__":)";
    deep.append(5000, '[').append(5000, ']').append("}");
    expect_refused({
        {"another kind of file",
         safetensors("PK\x03\x04 not JSON"),
         Code::kInvalidFile,
         {"expected a header that starts with '{', got byte 0x50"}},
        {"white space first", safetensors(" {}"), Code::kInvalidFile, {"got byte 0x20"}},
        {"unterminated", safetensors(R"({"a":)"), Code::kInvalidFile, {"header:1:6"}},
        {"comma at the end",
         safetensors(R"({"__metadata__":{},})"),
         Code::kInvalidFile,
         {"header:1:20"}},
        {"something after it", safetensors("{} x"), Code::kInvalidFile, {"header:1:"}},
        {"duplicate tensor",
         safetensors(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                     R"("a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                     "xy"),
         Code::kInvalidFile,
         {"header", "\"a\"", "twice"}},
        {"duplicate field",
         one(R"("dtype":"U8","dtype":"I8","shape":[1],"data_offsets":[0,1])", "x"),
         Code::kInvalidFile,
         {"header", "dtype", "twice"}},
        {"name that is not UTF-8",
         safetensors("{\"a\xC0\xAF\":{}}"),
         Code::kInvalidFile,
         {"header:1:4", "UTF-8"}},
        {"deep nesting", safetensors(deep), Code::kInvalidFile, {"header:1:", "8"}},
        {"control character in a name",
         safetensors(R"({"a\n":{}})"),
         Code::kInvalidFile,
         {R"(tensor "a\n": expected a name without control characters)"}},
        {"empty name", safetensors(R"({"":{}})"), Code::kInvalidFile, {"not empty"}},
    });
}

TEST(Safetensors, RefusesBadFieldsOfATensor) {
    expect_refused({
        {"tensor is no object",
         safetensors(R"({"a":3})"),
         Code::kInvalidFile,
         {"header: a: expected an object, got 3"}},
        {"no dtype",
         one(R"("shape":[1],"data_offsets":[0,1])", "x"),
         Code::kInvalidFile,
         {"header: a", "dtype"}},
        {"unknown dtype",
         one(R"("dtype":"F9","shape":[1],"data_offsets":[0,1])", "x"),
         Code::kInvalidFile,
         {"a.dtype: expected a dtype such as BF16", "got \"F9\""}},
        {"dtype in lower case",
         one(R"("dtype":"bf16","shape":[1],"data_offsets":[0,2])", "xy"),
         Code::kInvalidFile,
         {"got \"bf16\""}},
        {"dtype is a number",
         one(R"("dtype":7,"shape":[1],"data_offsets":[0,1])", "x"),
         Code::kInvalidFile,
         {"a.dtype: expected a string, got 7"}},
        {"unknown field",
         one(R"("dtype":"U8","shape":[1],"data_offsets":[0,1],"strides":[1])", "x"),
         Code::kInvalidFile,
         {"strides"}},
        {"shape is a number",
         one(R"("dtype":"U8","shape":1,"data_offsets":[0,1])", "x"),
         Code::kInvalidFile,
         {"a.shape: expected an array"}},
        {"negative dim",
         one(R"("dtype":"U8","shape":[2,-1],"data_offsets":[0,1])", "x"),
         Code::kInvalidFile,
         {"a.shape[1]: expected an integer >= 0, got -1"}},
        {"fractional dim",
         one(R"("dtype":"U8","shape":[1.0],"data_offsets":[0,1])", "x"),
         Code::kInvalidFile,
         {"a.shape[0]: expected an integer >= 0"}},
        {"dim of 2^63",
         one(R"("dtype":"U8","shape":[9223372036854775808],"data_offsets":[0,1])", "x"),
         Code::kInvalidFile,
         {"a.shape[0]", "9223372036854775808"}},
        {"product overflows",
         one(R"("dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,1])", "x"),
         Code::kInvalidFile,
         {"shape [4294967296, 4294967296] has more elements than 2^63 bits"}},
        {"product wraps to the right size",
         one(R"("dtype":"U8","shape":[4294967296,4294967296,1],"data_offsets":[0,0])"),
         Code::kInvalidFile,
         {"2^63"}},
        {"strides of an empty tensor overflow",
         one(R"("dtype":"U8","shape":[0,4294967296,4294967296],"data_offsets":[0,0])"),
         Code::kInvalidFile,
         {"2^63"}},
        {"six dims",
         one(R"("dtype":"U8","shape":[1,1,1,1,1,1],"data_offsets":[0,1])", "x"),
         Code::kUnsupported,
         {"a.shape: expected at most 5 dims, got 6"}},
        {"half a byte",
         one(R"("dtype":"F4","shape":[3],"data_offsets":[0,2])", "xy"),
         Code::kInvalidFile,
         {"shape [3] of 4-bit elements is not a whole number of bytes"}},
        {"metadata is no object",
         safetensors(R"({"__metadata__":"pt"})"),
         Code::kInvalidFile,
         {"__metadata__: expected an object"}},
        {"metadata value is no string",
         safetensors(R"({"__metadata__":{"n":1}})"),
         Code::kInvalidFile,
         {"__metadata__.n: expected a string, got 1"}},
    });
}

TEST(Safetensors, RefusesBadOffsets) {
    const std::string_view a4 = R"("a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]})";
    auto two = [&](std::string_view b, std::string_view data) {
        return safetensors(fmt::format("{{{},{}}}", a4, b), data);
    };
    expect_refused({
        {"three offsets",
         one(R"("dtype":"U8","shape":[1],"data_offsets":[0,1,2])", "x"),
         Code::kInvalidFile,
         {"a.data_offsets: expected [begin, end] with begin <= end"}},
        {"begin after end",
         one(R"("dtype":"U8","shape":[1],"data_offsets":[1,0])", "x"),
         Code::kInvalidFile,
         {"begin <= end"}},
        {"negative offset",
         one(R"("dtype":"U8","shape":[1],"data_offsets":[-1,0])", "x"),
         Code::kInvalidFile,
         {"a.data_offsets[0]: expected an integer >= 0, got -1"}},
        {"wrong byte count",
         one(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])", "abcd"),
         Code::kInvalidFile,
         {"expected 8 bytes for F32 [2], got 4 (data_offsets 0, 4)"}},
        {"file cut in the data",
         safetensors(fmt::format("{{{}}}", a4), "abc"),
         Code::kInvalidFile,
         {"tensor 'a'", "ends at 4, but the data buffer has 3 bytes",
          "expected a file of 65 bytes, got 64: it is cut short"}},
        {"end far outside",
         two(R"("b":{"dtype":"U8","shape":[4611686018427387904],"data_offsets":)"
             R"([4611686018427387904,9223372036854775807]})",
             "abcd"),
         Code::kInvalidFile,
         {"header: b: "}},
        {"overlap",
         two(R"("b":{"dtype":"U8","shape":[2],"data_offsets":[3,5]})", "abcde"),
         Code::kInvalidFile,
         {"tensor 'b': expected its data to start at 4, got 3: it overlaps another tensor"}},
        {"the same bytes twice",
         two(R"("b":{"dtype":"U8","shape":[4],"data_offsets":[0,4]})", "abcd"),
         Code::kInvalidFile,
         {"overlaps another tensor"}},
        {"hole",
         two(R"("b":{"dtype":"U8","shape":[1],"data_offsets":[5,6]})", "abcdef"),
         Code::kInvalidFile,
         {"tensor 'b': expected its data to start at 4, got 5: the data buffer has a hole"}},
        {"hole at the start",
         one(R"("dtype":"U8","shape":[1],"data_offsets":[1,2])", "xy"),
         Code::kInvalidFile,
         {"expected its data to start at 0, got 1"}},
        {"tail",
         safetensors(fmt::format("{{{}}}", a4), "abcdefg"),
         Code::kInvalidFile,
         {"3 bytes belong to no tensor"}},
        {"an empty tensor beyond the end",
         two(R"("b":{"dtype":"U8","shape":[0],"data_offsets":[9,9]})", "abcd"),
         Code::kInvalidFile,
         {"tensor 'b'", "ends at 9"}},
    });
}

TEST(Safetensors, RefusesEveryTruncationOfAGoodFile) {
    const TempFolder folder;
    const std::string good = small_safetensors({"a", "b", "c"});
    for (std::size_t size = 0; size < good.size(); ++size) {
        const auto file = SafetensorsFile::open(folder.write("f", good.substr(0, size)));
        ASSERT_FALSE(file) << size;
        ASSERT_EQ(file.error().code(), Code::kInvalidFile) << size;
    }
    EXPECT_TRUE(SafetensorsFile::open(folder.write("f", good)));
}

TEST(Safetensors, SurvivesEverySingleByteChange) {
    const TempFolder folder;
    const std::string good = small_safetensors({"a", "b"});
    for (std::size_t i = 0; i < good.size(); ++i)
        for (int change : {0x01, 0x10, 0x80, 0xFF}) {
            std::string bad = good;
            bad[i] = static_cast<char>(bad[i] ^ change);
            const auto file = SafetensorsFile::open(folder.write("f", bad));
            if (file) {
                for (const TensorInfo& tensor : file->tensors())
                    ASSERT_LE(tensor.bytes, 2);
            } else {
                ASSERT_FALSE(file.error().message().empty());
            }
        }
}

TEST(Safetensors, ReadsEveryDtypeOfTheFormat) {
    struct Row {
        const char* name;
        int bytes_of_4;
        std::optional<DType> dtype;
    };
    const Row rows[] = {
        {"F32", 16, DType::kF32},     {"BF16", 8, DType::kBF16},     {"F16", 8, DType::kF16},
        {"F8_E4M3", 4, DType::kE4M3}, {"F8_E8M0", 4, DType::kUE8M0}, {"F4", 2, DType::kE2M1},
        {"U8", 4, DType::kU8},        {"I32", 16, DType::kI32},      {"I64", 32, DType::kI64},
        {"F64", 32, std::nullopt},    {"F8_E5M2", 4, std::nullopt},  {"F6_E2M3", 3, std::nullopt},
        {"F6_E3M2", 3, std::nullopt}, {"BOOL", 4, std::nullopt},     {"I8", 4, std::nullopt},
        {"I16", 8, std::nullopt},     {"U16", 8, std::nullopt},      {"U32", 16, std::nullopt},
        {"U64", 32, std::nullopt},    {"C64", 32, std::nullopt},
    };
    const TempFolder folder;
    for (const Row& row : rows) {
        SCOPED_TRACE(row.name);
        const auto file = SafetensorsFile::open(
            folder.write("f", one(fmt::format(R"("dtype":"{}","shape":[2,2],"data_offsets":[0,{}])",
                                              row.name, row.bytes_of_4),
                                  std::string(static_cast<std::size_t>(row.bytes_of_4), '\x38'))));
        ASSERT_TRUE(file) << file.error().message();
        const TensorInfo& tensor = file->tensors().at(0);
        EXPECT_EQ(tensor.file_dtype, row.name);
        EXPECT_EQ(tensor.dtype, row.dtype);
        EXPECT_EQ(tensor.bytes, row.bytes_of_4);
        const Result<ConstView> view = tensor.view();
        if (!row.dtype) {
            expect_error(view, Code::kUnsupported,
                         {"tensor 'a': dtype ", row.name, "can be stored but not computed on"});
            continue;
        }
        ASSERT_TRUE(view);
        EXPECT_EQ(view->dtype, *row.dtype);
        EXPECT_EQ(view->shape, (Shape{2, 2}));
        EXPECT_EQ(view->bytes(), row.bytes_of_4);
        EXPECT_EQ(view->data[0], std::byte{0x38});
    }
}

TEST(Safetensors, FindsTensorsByNameWithTheirOwnData) {
    const TempFolder folder;
    auto opened = SafetensorsFile::open(folder.write(
        "f", safetensors(R"({"__metadata__":{"format":"pt","b":"ü"},)"
                         R"("z.w":{"dtype":"U8","shape":[2,1],"data_offsets":[3,5]},)"
                         R"("gewicht.ü":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},)"
                         R"("empty":{"dtype":"F32","shape":[0,7],"data_offsets":[3,3]},)"
                         R"("scalar":{"dtype":"F32","shape":[],"data_offsets":[5,9]}}   )",
                         "abcde\x01\x02\x03\x04")));
    ASSERT_TRUE(opened) << opened.error().message();
    const SafetensorsFile file = std::move(*opened); // views survive a move
    ASSERT_EQ(file.tensors().size(), 4u);
    EXPECT_EQ(file.tensors()[0].name, "empty");
    EXPECT_EQ(file.tensors()[1].name, "gewicht.ü");
    EXPECT_EQ(file.tensors()[3].name, "z.w");
    EXPECT_EQ(std::memcmp(file.find("gewicht.ü")->data, "abc", 3), 0);
    EXPECT_EQ(std::memcmp(file.find("z.w")->data, "de", 2), 0);
    EXPECT_EQ(file.find("z.w")->describe(), "U8 [2, 1]");
    EXPECT_EQ(file.find("empty")->bytes, 0);
    EXPECT_NE(file.find("empty")->data, nullptr);
    EXPECT_EQ(file.find("scalar")->shape, Shape{});
    EXPECT_EQ(file.find("scalar")->bytes, 4);
    EXPECT_EQ(file.find("nothing"), nullptr);
    const auto data_start = reinterpret_cast<std::uintptr_t>(file.find("gewicht.ü")->data);
    EXPECT_EQ(file.find("scalar")->aligned(), (data_start + 5) % 4 == 0);
    EXPECT_TRUE(file.find("z.w")->aligned());
    ASSERT_EQ(file.metadata().size(), 2u);
    EXPECT_EQ(file.metadata()[1].second, "ü");
}

TEST(Safetensors, AcceptsAFileWithoutTensors) {
    const TempFolder folder;
    const auto file = SafetensorsFile::open(folder.write("f", safetensors("{}")));
    ASSERT_TRUE(file) << file.error().message();
    EXPECT_TRUE(file->tensors().empty());
    EXPECT_TRUE(SafetensorsFile::open(folder.write("g", safetensors(R"({"__metadata__":{}})"))));
}

TEST(Safetensors, NoticesAFileThatIsCutAfterOpening) {
    const TempFolder folder;
    const std::string path = folder.write("f", small_safetensors({"a", "b"}));
    const auto file = SafetensorsFile::open(path);
    ASSERT_TRUE(file);
    EXPECT_TRUE(file->still_intact().ok());
    ASSERT_EQ(::truncate(path.c_str(), file->file_bytes() - 1), 0);
    expect_error(file->still_intact(), Code::kInvalidFile, {path, "changed while it was in use"});
}

} // namespace
} // namespace lr::checkpoint
