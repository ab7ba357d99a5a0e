// SPDX-License-Identifier: Apache-2.0
//
// cli/npy.h: a float32 matrix as a NumPy .npy file (format 1.0), written row by row.
#pragma once

#include "core/status.h"

#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>

namespace lr::cli {

class NpyWriter {
  public:
    // Rows may come in any number; the header is completed by finish().
    static Result<NpyWriter> create(const std::string& path, std::int64_t columns);

    Status append(std::span<const float> rows); // a multiple of `columns`
    Status finish();

  private:
    struct Close {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };
    NpyWriter(std::string path, std::FILE* file, std::int64_t columns)
        : path_(std::move(path)), file_(file), columns_(columns) {}
    Status write_header();

    std::string path_;
    std::unique_ptr<std::FILE, Close> file_;
    std::int64_t columns_;
    std::int64_t rows_ = 0;
};

} // namespace lr::cli
