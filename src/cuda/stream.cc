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

Status DeviceBuffer::upload(const void* host, Stream stream) {
    CUDA_CHECK(
        cudaMemcpyAsync(data_, host, bytes_, cudaMemcpyHostToDevice, detail::native(stream)));
    return synchronize(stream);
}

Status DeviceBuffer::download(void* host, Stream stream) const {
    CUDA_CHECK(
        cudaMemcpyAsync(host, data_, bytes_, cudaMemcpyDeviceToHost, detail::native(stream)));
    return synchronize(stream);
}

} // namespace lr::cuda
