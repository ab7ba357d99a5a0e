// SPDX-License-Identifier: Apache-2.0
#include "cuda/staging.h"

#include "cuda/detail/check.h"

#include <utility>

namespace lr::cuda {

Result<Staging> Staging::create(Stream stream) {
    Staging staging(stream);
    for (Buffer& buffer : staging.buffers_) {
        CUDA_CHECK(cudaMallocHost(&buffer.memory, kBytes));
        cudaEvent_t event = nullptr;
        CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
        buffer.sent = event;
    }
    return staging;
}

Staging::Staging(Staging&& other) noexcept
    : stream_(other.stream_), buffers_(std::exchange(other.buffers_, {})),
      current_(other.current_) {}

Staging::~Staging() {
    for (const Buffer& buffer : buffers_) {
        if (buffer.sent) {
            cudaEventSynchronize(static_cast<cudaEvent_t>(buffer.sent));
            cudaEventDestroy(static_cast<cudaEvent_t>(buffer.sent));
        }
        cudaFreeHost(buffer.memory);
    }
}

Result<std::span<std::byte>> Staging::next() {
    current_ = (current_ + 1) % buffers_.size();
    CUDA_CHECK(cudaEventSynchronize(static_cast<cudaEvent_t>(buffers_[current_].sent)));
    return std::span(static_cast<std::byte*>(buffers_[current_].memory), kBytes);
}

Status Staging::send(std::byte* to, std::size_t bytes) {
    const Buffer& buffer = buffers_[current_];
    CUDA_CHECK(
        cudaMemcpyAsync(to, buffer.memory, bytes, cudaMemcpyHostToDevice, detail::native(stream_)));
    CUDA_CHECK(cudaEventRecord(static_cast<cudaEvent_t>(buffer.sent), detail::native(stream_)));
    return {};
}

} // namespace lr::cuda
