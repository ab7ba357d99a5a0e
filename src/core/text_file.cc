// SPDX-License-Identifier: Apache-2.0
#include "core/text_file.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace lr {
namespace {

struct Descriptor {
    int fd;
    ~Descriptor() {
        if (fd >= 0)
            ::close(fd);
    }
};

Failure system_failure(const std::string& path, const char* what) {
    const Code code = errno == ENOENT || errno == ENOTDIR ? Code::kNotFound : Code::kInternal;
    return fail(code, "{}: {}: {}", path, what, std::strerror(errno));
}

} // namespace

Result<std::string> read_text_file(const std::string& path) {
    // Non-blocking: opening a pipe without a writer must not hang.
    const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    struct stat info {};
    if (file.fd < 0 || ::fstat(file.fd, &info) != 0)
        return system_failure(path, "cannot be opened for reading");
    if (!S_ISREG(info.st_mode))
        return fail(Code::kInvalidArgument, "{}: expected a regular file, got a {}", path,
                    S_ISDIR(info.st_mode) ? "folder" : "special file");
    std::string text(static_cast<std::size_t>(info.st_size), '\0');
    std::size_t done = 0;
    while (done < text.size()) {
        const ssize_t got = ::read(file.fd, text.data() + done, text.size() - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return system_failure(path, "cannot be read");
        if (got == 0)
            return fail(Code::kInvalidFile, "{}: expected {} bytes as at open, got {}", path,
                        text.size(), done);
        done += static_cast<std::size_t>(got);
    }
    return text;
}

} // namespace lr
