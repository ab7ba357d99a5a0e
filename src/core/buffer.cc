// SPDX-License-Identifier: Apache-2.0
#include "core/buffer.h"

#include "core/check.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <sys/mman.h>

namespace lr {
namespace {

// Above this, pages come straight from the system: zero without being touched.
constexpr std::int64_t kMapBytes = std::int64_t{1} << 20;

struct Header {                // in front of the data, so that Free knows what to give back
    std::int64_t mapped_bytes; // 0: from aligned_alloc
};
static_assert(sizeof(Header) <= kBufferAlign);

} // namespace

void Buffer::Free::operator()(std::byte* data) const {
    std::byte* block = data - kBufferAlign;
    const std::int64_t mapped = reinterpret_cast<const Header*>(block)->mapped_bytes;
    if (mapped > 0)
        munmap(block, static_cast<std::size_t>(mapped));
    else
        std::free(block);
}

Result<Buffer> Buffer::allocate(std::int64_t bytes, std::string_view what) {
    LR_CHECK_GE(bytes, 0);
    Buffer buffer;
    if (bytes == 0)
        return buffer;
    const auto align = static_cast<std::int64_t>(kBufferAlign);
    const std::int64_t total = align + (bytes + align - 1) / align * align;
    void* block = nullptr;
    if (total >= kMapBytes) {
        block = mmap(nullptr, static_cast<std::size_t>(total), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        block = block == MAP_FAILED ? nullptr : block;
    } else {
        block = std::aligned_alloc(kBufferAlign, static_cast<std::size_t>(total));
        if (block)
            std::fill_n(static_cast<std::byte*>(block), total, std::byte{0});
    }
    if (!block)
        return fail(Code::kResourceExhausted, "{}: {} of memory could not be had", what,
                    format_bytes(bytes));
    reinterpret_cast<Header*>(block)->mapped_bytes = total >= kMapBytes ? total : 0;
    buffer.data_.reset(static_cast<std::byte*>(block) + kBufferAlign);
    buffer.size_ = bytes;
    return buffer;
}

std::string format_bytes(std::int64_t bytes) {
    constexpr std::array<const char*, 4> kUnits = {"KiB", "MiB", "GiB", "TiB"};
    if (bytes < 1024)
        return fmt::format("{} bytes", bytes);
    double value = static_cast<double>(bytes) / 1024.0;
    std::size_t unit = 0;
    while (value >= 1024.0 && unit + 1 < kUnits.size()) {
        value /= 1024.0;
        ++unit;
    }
    return fmt::format("{:.{}f} {}", value, value < 10.0 ? 2 : value < 100.0 ? 1 : 0, kUnits[unit]);
}

} // namespace lr
