// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/mapped_file.h"

#include "core/check.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace lr::checkpoint {
namespace {

// What the signal handler may read: a fixed table of atomics, nothing that locks or allocates. A
// slot is free while `begin` is 0; `begin` is written last and cleared first. Files beyond the
// table's size are mapped all the same and merely not named in the handler's line.
struct Range {
    std::atomic<bool> taken{false};
    std::atomic<std::uintptr_t> begin{0};
    std::atomic<std::uintptr_t> end{0};
    std::atomic<const char*> path{nullptr};
};
std::array<Range, 1024> g_ranges;

Range* register_range(const std::byte* data, std::size_t size, const char* path) {
    for (Range& range : g_ranges) {
        bool expected = false;
        if (!range.taken.compare_exchange_strong(expected, true))
            continue;
        const auto begin = reinterpret_cast<std::uintptr_t>(data);
        range.path = path;
        range.end = begin + size;
        range.begin = begin;
        return &range;
    }
    return nullptr;
}

void unregister_range(Range* range) {
    if (range == nullptr)
        return;
    range->begin = 0;
    range->end = 0;
    range->path = nullptr;
    range->taken = false;
}

void write_stderr(const char* text) {
    std::size_t length = std::strlen(text);
    while (length > 0) {
        const ssize_t written = ::write(STDERR_FILENO, text, length);
        if (written <= 0)
            return;
        text += written;
        length -= static_cast<std::size_t>(written);
    }
}

void on_sigbus(int signal_number, siginfo_t* info, void*) {
    const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
    for (const Range& range : g_ranges) {
        const std::uintptr_t begin = range.begin;
        const bool fault = info->si_code > 0; // else another process sent it, without an address
        if (!fault || begin == 0 || address < begin || address >= range.end)
            continue;
        const char* path = range.path;
        write_stderr("liverow: error: ");
        write_stderr(path != nullptr ? path : "a mapped file");
        write_stderr(
            ": the file was cut short, or could not be read, while it was in use; expected "
            "it to stay as it was at open; restore the file and start again\n");
        ::_exit(1);
    }
    ::signal(signal_number, SIG_DFL); // not ours: it takes the default action on return
    ::raise(signal_number);
}

std::string system_error() {
    return std::strerror(errno);
}

class FileDescriptor {
  public:
    explicit FileDescriptor(int fd) : fd_(fd) {}
    FileDescriptor(const FileDescriptor&) = delete;
    FileDescriptor& operator=(const FileDescriptor&) = delete;
    ~FileDescriptor() {
        if (fd_ >= 0)
            ::close(fd_);
    }
    int get() const { return fd_; }

  private:
    int fd_;
};

} // namespace

struct MappedFile::Mapping {
    std::string path;
    FileDescriptor fd;
    struct stat at_open {};
    std::byte* data = nullptr;
    Range* range = nullptr;

    Mapping(const std::string& path_in, int fd_in) : path(path_in), fd(fd_in) {}
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;
    ~Mapping() {
        unregister_range(range);
        if (data != nullptr)
            ::munmap(data, size());
    }
    std::size_t size() const { return static_cast<std::size_t>(at_open.st_size); }
};

MappedFile::MappedFile(std::unique_ptr<Mapping> mapping) : mapping_(std::move(mapping)) {}
MappedFile::MappedFile(MappedFile&&) noexcept = default;
MappedFile& MappedFile::operator=(MappedFile&&) noexcept = default;
MappedFile::~MappedFile() = default;

Result<MappedFile> MappedFile::open(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a pipe must not hang
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return fail(Code::kNotFound, "{}: no such file", path);
    if (fd < 0)
        return fail(Code::kInternal, "{}: cannot open the file: {}", path, system_error());
    auto mapping = std::make_unique<Mapping>(path, fd);
    if (::fstat(fd, &mapping->at_open) != 0)
        return fail(Code::kInternal, "{}: cannot read the file's size: {}", path, system_error());
    if (!S_ISREG(mapping->at_open.st_mode))
        return fail(Code::kInvalidArgument, "{}: expected a regular file, got a {}", path,
                    S_ISDIR(mapping->at_open.st_mode) ? "folder" : "special file");
    if (mapping->size() > 0) {
        void* data = ::mmap(nullptr, mapping->size(), PROT_READ, MAP_PRIVATE, fd, 0);
        if (data == MAP_FAILED)
            return fail(Code::kInternal, "{}: cannot map {} bytes: {}", path, mapping->size(),
                        system_error());
        mapping->data = static_cast<std::byte*>(data);
        mapping->range = register_range(mapping->data, mapping->size(), mapping->path.c_str());
    }
    return MappedFile(std::move(mapping));
}

const std::string& MappedFile::path() const {
    return mapping_->path;
}

std::int64_t MappedFile::size() const {
    return static_cast<std::int64_t>(mapping_->at_open.st_size);
}

std::span<const std::byte> MappedFile::bytes() const {
    return {mapping_->data, mapping_->size()};
}

Status MappedFile::still_intact() const {
    struct stat now {};
    if (::fstat(mapping_->fd.get(), &now) != 0)
        return fail(Code::kInternal, "{}: cannot read the file's size: {}", path(), system_error());
    const struct stat& then = mapping_->at_open;
    if (now.st_size != then.st_size)
        return fail(Code::kInvalidFile,
                    "{}: the file changed while it was in use: expected {} bytes as at open, got "
                    "{}; start again once it is complete",
                    path(), then.st_size, now.st_size);
    if (now.st_mtim.tv_sec != then.st_mtim.tv_sec || now.st_mtim.tv_nsec != then.st_mtim.tv_nsec)
        return fail(Code::kInvalidFile,
                    "{}: the file changed while it was in use: it was written to after it was "
                    "opened; start again once it is complete",
                    path());
    return {};
}

void install_truncated_file_handler() {
    struct sigaction action {};
    action.sa_sigaction = on_sigbus;
    action.sa_flags = SA_SIGINFO;
    ::sigemptyset(&action.sa_mask);
    LR_CHECK_EQ(::sigaction(SIGBUS, &action, nullptr), 0);
}

} // namespace lr::checkpoint
