// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda_memory.h"

#include "core/buffer.h"

#include <algorithm>

namespace lr::engine {
namespace {

class CudaRegion final : public Region {
  public:
    explicit CudaRegion(cuda::DeviceBuffer buffer) : buffer_(std::move(buffer)) {}
    std::byte* data() const override { return buffer_.data(); }

  private:
    cuda::DeviceBuffer buffer_;
};

} // namespace

Result<std::unique_ptr<Region>> CudaMemory::allocate(std::int64_t bytes, std::string_view what) {
    auto buffer =
        cuda::DeviceBuffer::allocate(static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1)));
    if (!buffer && buffer.error().code() == Code::kResourceExhausted)
        return fail(Code::kResourceExhausted, "GPU memory: {} of {} do not fit: {}",
                    format_bytes(bytes), what, buffer.error().message());
    if (!buffer)
        return fail(std::move(buffer).error());
    return std::unique_ptr<Region>(std::make_unique<CudaRegion>(std::move(*buffer)));
}

Status CudaMemory::copy_in(std::byte* to, std::span<const std::byte> from) {
    return cuda::copy_in(to, from, stream_);
}

Status CudaMemory::copy_out(std::span<std::byte> to, const std::byte* from) {
    return cuda::copy_out(from, to, stream_);
}

Status CudaMemory::copy(std::byte* to, const std::byte* from, std::int64_t bytes) {
    return cuda::copy_within(to, from, static_cast<std::size_t>(bytes), stream_);
}

Status CudaMemory::zero(std::byte* to, std::int64_t bytes) {
    return cuda::zero(to, static_cast<std::size_t>(bytes), stream_);
}

} // namespace lr::engine
