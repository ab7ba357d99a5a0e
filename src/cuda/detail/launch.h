// SPDX-License-Identifier: Apache-2.0
//
// cuda/detail/launch.h: the one way to launch a kernel. For .cu files only.
#pragma once

#include "cuda/detail/check.h"

#include <cuda_runtime.h>

namespace lr::cuda::detail {

// In every kernel, before it reads or writes anything but weights: a kernel may begin while the one
// before it in the stream still runs, and this waits for its end. Since all of them do, everything
// enqueued before has ended too. Then the next one may begin.
__device__ inline void wait_for_inputs() {
    asm volatile("griddepcontrol.wait;" : : : "memory");
    asm volatile("griddepcontrol.launch_dependents;" : : : "memory");
}

struct LaunchShape {
    dim3 grid = 1;
    dim3 block = 1;
    std::size_t shared_bytes = 0;
};

// Enqueues the kernel and reports a refused launch under `name`. A build with LR_DCHECK (no NDEBUG)
// also waits for it, so that an error names the kernel that made it; such a build cannot capture.
template <typename... Params, typename... Args>
Status launch(const char* name, void (*kernel)(Params...), const LaunchShape& shape, Stream stream,
              Args... args) {
    cudaLaunchConfig_t config{};
    config.gridDim = shape.grid;
    config.blockDim = shape.block;
    config.dynamicSmemBytes = shape.shared_bytes;
    config.stream = native(stream);
    cudaLaunchAttribute early{};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    config.attrs = &early;
    config.numAttrs = 1;
    constexpr std::size_t kAlwaysAllowed = 48 << 10;
    if (shape.shared_bytes > kAlwaysAllowed)
        CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(shape.shared_bytes)));
    cudaError_t code = cudaLaunchKernelEx(&config, kernel, static_cast<Params>(args)...);
#ifndef NDEBUG
    if (code == cudaSuccess)
        code = cudaStreamSynchronize(config.stream);
#endif
    return code == cudaSuccess ? Status() : error(code, name);
}

} // namespace lr::cuda::detail
