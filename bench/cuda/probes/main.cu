// SPDX-License-Identifier: Apache-2.0
//
// bench_probes: every probe of this folder on device 0 (bench/cuda/probes/probe.h).
#include <cstdint>

#include "bench/cuda/probes/probe.h"

namespace lr::probes {
namespace {

__global__ void mix_kernel(std::uint32_t* words, std::size_t count) {
    const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
    for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
         i += stride) {
        auto x = static_cast<std::uint32_t>(i * 2654435761u);
        x = (x ^ x >> 15) * 2246822519u;
        words[i] = (x ^ x >> 13) & 0xbfffbfffu; // no exponent of ones
    }
}

} // namespace

void* mixed_memory(std::size_t bytes) {
    const std::size_t words = (bytes + 3) / 4;
    void* memory = nullptr;
    PROBE_CHECK(cudaMalloc(&memory, 4 * words));
    mix_kernel<<<1024, 256>>>(static_cast<std::uint32_t*>(memory), words);
    PROBE_CHECK(cudaGetLastError());
    PROBE_CHECK(cudaDeviceSynchronize());
    return memory;
}

} // namespace lr::probes

int main() {
    using namespace lr::probes;
    cudaDeviceProp device{};
    PROBE_CHECK(cudaGetDeviceProperties(&device, 0));
    int kilohertz = 0;
    PROBE_CHECK(cudaDeviceGetAttribute(&kilohertz, cudaDevAttrClockRate, 0));
    const Card card{device.multiProcessorCount, kilohertz * 1e-6};
    std::printf("%s, %d multiprocessors, up to %.2f GHz\n", device.name, card.multiprocessors,
                card.clock_ghz);
    probe_boundaries(card);
    probe_weight_chains(card);
    probe_grid_barrier(card);
    probe_bf16_multiply(card);
    probe_wgmma(card);
    probe_streaming(card);
    probe_libraries();
}
