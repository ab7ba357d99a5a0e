// SPDX-License-Identifier: Apache-2.0
//
// engine/cuda_memory.h: a GPU's memory, in order with one stream.
#pragma once

#include "cuda/stream.h"
#include "engine/memory.h"

namespace lr::engine {

class CudaMemory final : public Memory {
  public:
    // The stream outlives it.
    explicit CudaMemory(cuda::Stream stream) : stream_(stream) {}

    Result<std::unique_ptr<Region>> allocate(std::int64_t bytes, std::string_view what) override;
    Status copy_in(std::byte* to, std::span<const std::byte> from) override;
    Status copy_out(std::span<std::byte> to, const std::byte* from) override;
    Status copy(std::byte* to, const std::byte* from, std::int64_t bytes) override;
    Status zero(std::byte* to, std::int64_t bytes) override;

  private:
    cuda::Stream stream_;
};

} // namespace lr::engine
