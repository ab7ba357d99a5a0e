// SPDX-License-Identifier: Apache-2.0
//
// engine/memory.h: memory of the device that a rank computes on: the host's, or a GPU's.
#pragma once

#include "core/status.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace lr::engine {

// A block of memory; frees it.
class Region {
  public:
    virtual ~Region() = default;
    virtual std::byte* data() const = 0;
};

class Memory {
  public:
    virtual ~Memory() = default;

    // Uninitialised, 256-byte aligned. kResourceExhausted names `what` and its size.
    virtual Result<std::unique_ptr<Region>> allocate(std::int64_t bytes, std::string_view what) = 0;

    // In order with the work of the device. When one returns, the host's memory may be reused.
    virtual Status copy_in(std::byte* to, std::span<const std::byte> from) = 0;
    virtual Status copy_out(std::span<std::byte> to, const std::byte* from) = 0;
    virtual Status copy(std::byte* to, const std::byte* from, std::int64_t bytes) = 0;
    virtual Status zero(std::byte* to, std::int64_t bytes) = 0;
};

class HostMemory final : public Memory {
  public:
    Result<std::unique_ptr<Region>> allocate(std::int64_t bytes, std::string_view what) override;
    Status copy_in(std::byte* to, std::span<const std::byte> from) override;
    Status copy_out(std::span<std::byte> to, const std::byte* from) override;
    Status copy(std::byte* to, const std::byte* from, std::int64_t bytes) override;
    Status zero(std::byte* to, std::int64_t bytes) override;
};

} // namespace lr::engine
