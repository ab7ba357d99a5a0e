// SPDX-License-Identifier: Apache-2.0
//
// checkpoint/atomic_file.h: files that appear under their name complete or not at all, and whether
// a disk has room for them. Errors of the system are kInternal with the path.
#pragma once

#include "core/status.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lr::checkpoint {

// Grows under the name "<path>.partial" and takes its own name in finish(); when it is destroyed
// before, what it wrote is removed.
class AtomicFile {
  public:
    static Result<AtomicFile> create(const std::string& path);
    AtomicFile(AtomicFile&& other) noexcept;
    AtomicFile& operator=(AtomicFile&&) = delete;
    ~AtomicFile();

    Status write(const void* data, std::size_t size);
    // Flushes the file to the disk when `sync`, and renames it.
    Status finish(bool sync);

  private:
    AtomicFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
    std::string partial() const { return path_ + ".partial"; }

    std::string path_;
    int fd_;
};

Status write_file(const std::string& path, std::string_view text, bool sync);

// kResourceExhausted when the disk of this folder has fewer than `bytes` free; `advice` closes the
// message. A disk that does not tell has room.
Status check_space(const std::string& folder, std::int64_t bytes, std::string_view advice);

} // namespace lr::checkpoint
