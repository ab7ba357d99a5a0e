// SPDX-License-Identifier: Apache-2.0
#include "engine/memory.h"

#include "core/buffer.h"

#include <cstring>
#include <string>

namespace lr::engine {
namespace {

class HostRegion final : public Region {
  public:
    explicit HostRegion(Buffer buffer) : buffer_(std::move(buffer)) {}
    std::byte* data() const override { return buffer_.data(); }

  private:
    Buffer buffer_;
};

} // namespace

Result<std::unique_ptr<Region>> HostMemory::allocate(std::int64_t bytes, std::string_view what) {
    LR_TRY_ASSIGN(Buffer buffer, Buffer::allocate(bytes, std::string(what)));
    return std::unique_ptr<Region>(std::make_unique<HostRegion>(std::move(buffer)));
}

Status HostMemory::copy_in(std::byte* to, std::span<const std::byte> from) {
    std::memcpy(to, from.data(), from.size());
    return {};
}

Status HostMemory::copy_out(std::span<std::byte> to, const std::byte* from) {
    std::memcpy(to.data(), from, to.size());
    return {};
}

Status HostMemory::copy(std::byte* to, const std::byte* from, std::int64_t bytes) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
    return {};
}

Status HostMemory::zero(std::byte* to, std::int64_t bytes) {
    std::memset(to, 0, static_cast<std::size_t>(bytes));
    return {};
}

} // namespace lr::engine
