// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/atomic_file.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>
#include <utility>

namespace lr::checkpoint {
namespace {

Failure system_failure(const std::string& path, std::string_view what) {
    return fail(Code::kInternal, "{}: cannot {}: {}", path, what, std::strerror(errno));
}

} // namespace

Result<AtomicFile> AtomicFile::create(const std::string& path) {
    const std::string partial = path + ".partial";
    const int fd = ::open(partial.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return system_failure(path, "create the file");
    return AtomicFile(path, fd);
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

AtomicFile::~AtomicFile() {
    if (fd_ < 0)
        return;
    ::close(fd_);
    ::unlink(partial().c_str());
}

Status AtomicFile::write(const void* data, std::size_t size) {
    const char* next = static_cast<const char*>(data);
    while (size > 0) {
        const ssize_t written = ::write(fd_, next, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return system_failure(path_, "write to the file");
        next += written;
        size -= static_cast<std::size_t>(written);
    }
    return {};
}

Status AtomicFile::finish(bool sync) {
    if (sync && ::fsync(fd_) != 0)
        return system_failure(path_, "flush the file to the disk");
    if (::close(std::exchange(fd_, -1)) != 0 || ::rename(partial().c_str(), path_.c_str()) != 0) {
        const Failure failure = system_failure(path_, "complete the file");
        ::unlink(partial().c_str());
        return Status(failure.value());
    }
    return {};
}

Status write_file(const std::string& path, std::string_view text, bool sync) {
    LR_TRY_ASSIGN(AtomicFile file, AtomicFile::create(path));
    LR_TRY(file.write(text.data(), text.size()));
    return file.finish(sync);
}

Status check_space(const std::string& folder, std::int64_t bytes, std::string_view advice) {
    std::error_code error;
    const std::filesystem::space_info space = std::filesystem::space(folder, error);
    if (error || space.available >= static_cast<std::uintmax_t>(bytes))
        return {};
    return fail(Code::kResourceExhausted,
                "{}: the checkpoint needs {:.1f} GB, and the disk has {:.1f} GB free; {}", folder,
                static_cast<double>(bytes) * 1e-9, static_cast<double>(space.available) * 1e-9,
                advice);
}

} // namespace lr::checkpoint
