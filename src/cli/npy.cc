// SPDX-License-Identifier: Apache-2.0
#include "cli/npy.h"

#include "core/check.h"

#include <cerrno>
#include <cstring>

namespace lr::cli {
namespace {

constexpr std::size_t kHeaderBytes = 128; // magic, version, length and dictionary; fixed

Failure write_failed(const std::string& path) {
    return fail(Code::kInternal, "{}: could not be written: {}", path, std::strerror(errno));
}

} // namespace

Result<NpyWriter> NpyWriter::create(const std::string& path, std::int64_t columns) {
    std::FILE* file = std::fopen(path.c_str(), "wb");
    if (!file)
        return fail(Code::kInvalidArgument, "{}: cannot be opened for writing: {}", path,
                    std::strerror(errno));
    NpyWriter writer(path, file, columns);
    LR_TRY(writer.write_header());
    return writer;
}

Status NpyWriter::write_header() {
    std::string header("\x93NUMPY\x01\x00", 8);
    const std::size_t length = kHeaderBytes - 10;
    header += static_cast<char>(length & 0xFF);
    header += static_cast<char>(length >> 8);
    header += fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", rows_,
                          columns_);
    LR_CHECK_LT(header.size(), kHeaderBytes);
    header.resize(kHeaderBytes - 1, ' ');
    header += '\n';
    if (std::fseek(file_.get(), 0, SEEK_SET) != 0 ||
        std::fwrite(header.data(), 1, header.size(), file_.get()) != header.size())
        return write_failed(path_);
    return {};
}

Status NpyWriter::append(std::span<const float> rows) {
    LR_CHECK_EQ(std::ssize(rows) % columns_, 0);
    if (std::fwrite(rows.data(), sizeof(float), rows.size(), file_.get()) != rows.size())
        return write_failed(path_);
    rows_ += std::ssize(rows) / columns_;
    return {};
}

Status NpyWriter::finish() {
    LR_TRY(write_header());
    if (std::fflush(file_.get()) != 0)
        return write_failed(path_);
    return {};
}

} // namespace lr::cli
