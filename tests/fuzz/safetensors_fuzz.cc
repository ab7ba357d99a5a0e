// SPDX-License-Identifier: Apache-2.0
//
// A safetensors file from anyone: its header either is refused or describes memory that exists.
#include "checkpoint/safetensors.h"
#include "tests/fuzz/fuzz.h"

#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace {

// The bytes as a file that lives in memory alone.
class MemoryFile {
  public:
    MemoryFile(const std::uint8_t* data, std::size_t size) : fd_(memfd_create("safetensors", 0)) {
        FUZZ_CHECK(fd_ >= 0);
        FUZZ_CHECK(write(fd_, data, size) == static_cast<ssize_t>(size));
    }
    ~MemoryFile() { close(fd_); }
    MemoryFile(const MemoryFile&) = delete;
    MemoryFile& operator=(const MemoryFile&) = delete;
    std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

  private:
    int fd_;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0)
        return 0; // nothing to write
    const MemoryFile file(data, size);
    const auto opened = lr::checkpoint::SafetensorsFile::open(file.path());
    if (!opened) {
        FUZZ_CHECK(!opened.error().message().empty());
        return 0;
    }
    std::int64_t bytes = 0;
    std::string_view last;
    for (const lr::checkpoint::TensorInfo& tensor : opened->tensors()) {
        FUZZ_CHECK(opened->find(tensor.name) == &tensor);
        FUZZ_CHECK(&tensor == opened->tensors().data() || last < tensor.name);
        last = tensor.name;
        bytes += tensor.bytes;
        const std::vector<std::byte> copy(tensor.data, tensor.data + tensor.bytes); // all readable
        FUZZ_CHECK(std::ssize(copy) == tensor.bytes);
        if (const auto view = tensor.view())
            FUZZ_CHECK(view->bytes() == tensor.bytes);
        FUZZ_CHECK(!tensor.describe().empty());
    }
    FUZZ_CHECK(bytes < static_cast<std::int64_t>(size));
    FUZZ_CHECK(opened->still_intact().ok());
    return 0;
}
