// SPDX-License-Identifier: Apache-2.0
//
// cuda/staging.h: host to device through two pinned buffers: one is filled while the other is on
// its way.
#pragma once

#include "core/status.h"
#include "cuda/stream.h"

#include <array>
#include <cstddef>
#include <span>

namespace lr::cuda {

class Staging {
  public:
    static constexpr std::size_t kBytes = std::size_t{32} << 20; // of a buffer

    // Copies go to the stream, which outlives it.
    static Result<Staging> create(Stream stream);
    Staging(Staging&& other) noexcept;
    Staging& operator=(Staging&&) = delete;
    ~Staging();

    // The next buffer, kBytes long, when its last copy has been made.
    Result<std::span<std::byte>> next();
    // Enqueues a copy of the first `bytes` bytes of the buffer that next() gave.
    Status send(std::byte* to, std::size_t bytes);
    // Waits for all copies.
    Status finish() { return synchronize(stream_); }

  private:
    explicit Staging(Stream stream) : stream_(stream) {}
    struct Buffer {
        void* memory = nullptr;
        void* sent = nullptr; // a cudaEvent_t
    };
    Stream stream_;
    std::array<Buffer, 2> buffers_{};
    std::size_t current_ = 0;
};

} // namespace lr::cuda
