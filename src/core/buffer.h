// SPDX-License-Identifier: Apache-2.0
//
// core/buffer.h: owned, aligned host memory.
#pragma once

#include "core/status.h"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace lr {

inline constexpr std::size_t kBufferAlign = 256; // bytes

class Buffer {
  public:
    Buffer() = default;
    // Zeroed. kResourceExhausted names what it was for and how much was asked.
    static Result<Buffer> allocate(std::int64_t bytes, std::string_view what);

    std::byte* data() const { return data_.get(); }
    std::int64_t size() const { return size_; }

  private:
    struct Free {
        void operator()(std::byte* data) const;
    };
    std::unique_ptr<std::byte, Free> data_;
    std::int64_t size_ = 0;
};

// "1.5 GiB", "640 KiB", "12 bytes".
std::string format_bytes(std::int64_t bytes);

} // namespace lr
