// SPDX-License-Identifier: Apache-2.0
//
// cuda/detail/check.h: CUDA errors as Status, and the one way to launch a kernel. For .cu files and
// the .cc files of cuda/ that call the runtime.
#pragma once

#include "core/status.h"
#include "cuda/stream.h"

#include <cuda_runtime_api.h>

namespace lr::cuda::detail {

// No driver or no GPU is kNotFound with a line of its own (cuda/device.h); else "cuda: <call>:
// <CUDA's text>", where a lack of memory is kResourceExhausted and the rest kInternal.
Status error(cudaError_t code, const char* call);

inline cudaStream_t native(Stream stream) {
    return static_cast<cudaStream_t>(stream.handle);
}

} // namespace lr::cuda::detail

// CUDA_CHECK(cudaFoo(...)): go on when it succeeded, else return its Status.
#define CUDA_CHECK(call)                                                                           \
    do {                                                                                           \
        const cudaError_t lr_cuda_ = (call);                                                       \
        if (lr_cuda_ != cudaSuccess) [[unlikely]]                                                  \
            return ::lr::fail(::lr::cuda::detail::error(lr_cuda_, #call));                         \
    } while (false)
