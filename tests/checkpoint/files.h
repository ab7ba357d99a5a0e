// SPDX-License-Identifier: Apache-2.0
//
// tests/checkpoint/files.h: files made by hand, in a folder that disappears with its object.
#pragma once

#include "core/status.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <string_view>

namespace lr::checkpoint {

class TempFolder {
  public:
    TempFolder() {
        std::string pattern = (std::filesystem::temp_directory_path() / "lr_test_XXXXXX").string();
        path_ = ::mkdtemp(pattern.data());
    }
    TempFolder(const TempFolder&) = delete;
    TempFolder& operator=(const TempFolder&) = delete;
    ~TempFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }

    const std::string& path() const { return path_; }
    std::string file(std::string_view name) const { return path_ + "/" + std::string(name); }
    // Replaces what is there: some file systems flush a file that is rewritten in place.
    std::string write(std::string_view name, std::string_view content) const {
        std::filesystem::remove(file(name));
        std::ofstream(file(name), std::ios::binary) << content;
        return file(name);
    }

  private:
    std::string path_;
};

// Header length, header and data, as they are.
inline std::string safetensors(std::string_view header, std::string_view data = "") {
    std::string text;
    for (int i = 0; i < 8; ++i)
        text += static_cast<char>(static_cast<std::uint64_t>(header.size()) >> (8 * i));
    return text.append(header).append(data);
}

// A well-formed file of one-byte U8 tensors with these names, values 0, 1, 2, ...
inline std::string small_safetensors(std::initializer_list<std::string_view> names) {
    std::string header = "{", data;
    for (std::string_view name : names) {
        header += fmt::format(R"({}"{}":{{"dtype":"U8","shape":[1],"data_offsets":[{},{}]}})",
                              data.empty() ? "" : ",", name, data.size(), data.size() + 1);
        data += static_cast<char>(data.size());
    }
    return safetensors(header + "}", data);
}

// An error of that code whose message contains every fragment.
inline void expect_error(const Status& status, Code code,
                         std::initializer_list<std::string_view> fragments) {
    EXPECT_EQ(code_name(status.code()), std::string(code_name(code))) << status.message();
    for (std::string_view fragment : fragments)
        EXPECT_NE(status.message().find(fragment), std::string::npos)
            << "expected \"" << fragment << "\" in: " << status.message();
}
template <typename T> void expect_error(const Result<T>& result, Code code,
                                        std::initializer_list<std::string_view> fragments) {
    ASSERT_FALSE(result.has_value());
    expect_error(result.error(), code, fragments);
}

} // namespace lr::checkpoint
