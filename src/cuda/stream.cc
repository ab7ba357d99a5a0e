// SPDX-License-Identifier: Apache-2.0
#include "cuda/stream.h"

#include "cuda/detail/check.h"

namespace lr::cuda {

Result<StreamOwner> StreamOwner::create() {
    cudaStream_t stream = nullptr;
    // Non-blocking: never ordered against the default stream, which cannot be captured.
    CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return StreamOwner(Stream{stream});
}

StreamOwner::~StreamOwner() {
    if (stream_.handle)
        cudaStreamDestroy(detail::native(stream_));
}

Status synchronize(Stream stream) {
    CUDA_CHECK(cudaStreamSynchronize(detail::native(stream)));
    return {};
}

Result<DeviceBuffer> DeviceBuffer::allocate(std::size_t bytes) {
    void* data = nullptr;
    CUDA_CHECK(cudaMalloc(&data, bytes));
    return DeviceBuffer(static_cast<std::byte*>(data), bytes);
}

DeviceBuffer::~DeviceBuffer() {
    cudaFree(data_);
}

Status copy_in(std::byte* device, std::span<const std::byte> host, Stream stream) {
    CUDA_CHECK(cudaMemcpyAsync(device, host.data(), host.size(), cudaMemcpyHostToDevice,
                               detail::native(stream)));
    return synchronize(stream);
}

Status copy_out(const std::byte* device, std::span<std::byte> host, Stream stream) {
    CUDA_CHECK(cudaMemcpyAsync(host.data(), device, host.size(), cudaMemcpyDeviceToHost,
                               detail::native(stream)));
    return synchronize(stream);
}

Status copy_within(std::byte* to, const std::byte* from, std::size_t bytes, Stream stream) {
    CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, detail::native(stream)));
    return {};
}

Status zero(std::byte* to, std::size_t bytes, Stream stream) {
    CUDA_CHECK(cudaMemsetAsync(to, 0, bytes, detail::native(stream)));
    return {};
}

Status DeviceBuffer::upload(const void* host, Stream stream) {
    return copy_in(data_, {static_cast<const std::byte*>(host), bytes_}, stream);
}

Status DeviceBuffer::download(void* host, Stream stream) const {
    return copy_out(data_, {static_cast<std::byte*>(host), bytes_}, stream);
}

} // namespace lr::cuda
