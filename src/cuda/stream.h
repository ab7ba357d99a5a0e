// SPDX-License-Identifier: Apache-2.0
//
// cuda/stream.h: an ordered queue of device work, and device memory.
//
// A Stream is a handle passed by value to every launcher; a StreamOwner makes and frees one. A
// DeviceBuffer owns device memory. Both are bound to the device that is current when they are made.
#pragma once

#include "core/status.h"

#include <cstddef>
#include <span>
#include <utility>

namespace lr::cuda {

// A cudaStream_t without its header; {} is the default stream.
struct Stream {
    void* handle = nullptr;
};

class StreamOwner {
  public:
    static Result<StreamOwner> create();
    StreamOwner(StreamOwner&& other) noexcept : stream_(std::exchange(other.stream_, {})) {}
    StreamOwner& operator=(StreamOwner&& other) noexcept {
        std::swap(stream_, other.stream_);
        return *this;
    }
    ~StreamOwner();

    Stream get() const { return stream_; }

  private:
    explicit StreamOwner(Stream stream) : stream_(stream) {}
    Stream stream_;
};

// Waits until everything enqueued so far has finished; reports the error of any of it.
Status synchronize(Stream stream);

// Copies between host and device memory; they return when the host's may be reused.
Status copy_in(std::byte* device, std::span<const std::byte> host, Stream stream);
Status copy_out(const std::byte* device, std::span<std::byte> host, Stream stream);

// Enqueued on the stream, between and in device memory.
Status copy_within(std::byte* to, const std::byte* from, std::size_t bytes, Stream stream);
Status zero(std::byte* to, std::size_t bytes, Stream stream);

class DeviceBuffer {
  public:
    // Uninitialised. kResourceExhausted when the device has not enough memory.
    static Result<DeviceBuffer> allocate(std::size_t bytes);
    DeviceBuffer(DeviceBuffer&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
    DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    ~DeviceBuffer();

    std::byte* data() const { return data_; }
    std::size_t bytes() const { return bytes_; }

    // Whole-buffer copies; `host` holds bytes(). They return when the host memory may be reused.
    Status upload(const void* host, Stream stream);
    Status download(void* host, Stream stream) const;

  private:
    DeviceBuffer(std::byte* data, std::size_t bytes) : data_(data), bytes_(bytes) {}
    std::byte* data_;
    std::size_t bytes_;
};

} // namespace lr::cuda
