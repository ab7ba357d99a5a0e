// SPDX-License-Identifier: Apache-2.0
//
// checkpoint/mapped_file.h: a whole file, read-only, by mmap. Opening touches no data.
//
// A file that changes under its mapping. The kernel answers a read beyond the new end with SIGBUS,
// which no return value can report, so there are two defences:
//   still_intact()   compares size and modification time with those at open. Whoever copies or
//                    converts mapped data calls it before, and again after, and drops the result
//                    on an error. It catches a file that was cut or rewritten in place. (A file
//                    that was replaced by rename is a different file; the mapping keeps the old
//                    one, which is harmless.)
//   install_truncated_file_handler()   called once by a program's main(). A SIGBUS inside a mapped
//                    file then prints one line that names the file, and the process ends with
//                    status 1. Any other SIGBUS keeps its default action. Libraries and tests that
//                    do not ask for it get no handler.
#pragma once

#include "core/status.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace lr::checkpoint {

class MappedFile {
  public:
    // kNotFound when nothing is there, kInvalidArgument for a folder or a device, kInternal when
    // the system refuses to open or map it.
    static Result<MappedFile> open(const std::string& path);

    MappedFile(MappedFile&&) noexcept;
    MappedFile& operator=(MappedFile&&) noexcept;
    ~MappedFile();

    const std::string& path() const;
    std::int64_t size() const;                // bytes, as at open
    std::span<const std::byte> bytes() const; // null when the file is empty

    // Ok, or kInvalidFile: the file has another size or modification time than at open.
    Status still_intact() const;

  private:
    struct Mapping;
    explicit MappedFile(std::unique_ptr<Mapping> mapping);
    std::unique_ptr<Mapping> mapping_;
};

void install_truncated_file_handler();

} // namespace lr::checkpoint
