// SPDX-License-Identifier: Apache-2.0
//
// A barrier of all CTAs inside one cooperative kernel: a counter in global memory.
#include "bench/cuda/probes/probe.h"

namespace lr::probes {
namespace {

__device__ void grid_barrier(unsigned* counter, unsigned target) {
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(counter) : "memory");
        unsigned seen = 0;
        do // pairs with the release of every CTA's arrival
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                         : "=r"(seen)
                         : "l"(counter)
                         : "memory");
        while (seen < target);
    }
    __syncthreads();
}

__global__ void barrier_kernel(unsigned* counter, int rounds) {
    for (int round = 1; round <= rounds; ++round)
        grid_barrier(counter, gridDim.x * static_cast<unsigned>(round));
}

double barriers_us(int ctas, int rounds, unsigned* counter) {
    return graph_us([&](cudaStream_t stream) {
        PROBE_CHECK(cudaMemsetAsync(counter, 0, sizeof(unsigned), stream));
        cudaLaunchConfig_t config{};
        config.gridDim = ctas;
        config.blockDim = 256;
        config.stream = stream;
        cudaLaunchAttribute attribute{};
        attribute.id = cudaLaunchAttributeCooperative;
        attribute.val.cooperative = 1;
        config.attrs = &attribute;
        config.numAttrs = 1;
        PROBE_CHECK(cudaLaunchKernelEx(&config, barrier_kernel, counter, rounds));
    });
}

} // namespace

void probe_grid_barrier(const Card& card) {
    unsigned* counter = device_array<unsigned>(64);
    for (const int per_sm : {1, 2}) {
        const int ctas = per_sm * card.multiprocessors;
        const double us = (barriers_us(ctas, 72, counter) - barriers_us(ctas, 8, counter)) / 64;
        row("grid barrier", std::to_string(ctas) + " CTAs, cooperative", us, "us");
    }
    PROBE_CHECK(cudaFree(counter));
}

} // namespace lr::probes
