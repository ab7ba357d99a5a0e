// SPDX-License-Identifier: Apache-2.0
//
// Two bf16 products in one instruction: are subnormals kept, and how many a clock?
#include <cstdint>

#include "bench/cuda/probes/probe.h"

namespace lr::probes {
namespace {

constexpr int kChains = 8; // independent chains of a thread: more than the latency needs
constexpr int kSteps = 256;

__device__ std::uint32_t multiply(std::uint32_t a, std::uint32_t b) {
    std::uint32_t product;
    asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(product) : "r"(a), "r"(b));
    return product;
}

__global__ void rate_kernel(std::uint32_t factor, std::uint32_t* out, long long* clocks) {
    std::uint32_t chain[kChains];
#pragma unroll
    for (int c = 0; c < kChains; ++c)
        chain[c] = 0x3f803f80u + threadIdx.x + c;
    const long long start = clock64();
    for (int s = 0; s < kSteps; ++s)
#pragma unroll
        for (int c = 0; c < kChains; ++c)
            chain[c] = multiply(chain[c], factor);
    const long long stop = clock64();
    std::uint32_t sum = 0;
#pragma unroll
    for (int c = 0; c < kChains; ++c)
        sum ^= chain[c];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
    if (threadIdx.x == 0)
        clocks[blockIdx.x] = stop - start;
}

__global__ void product_kernel(std::uint32_t a, std::uint32_t b, std::uint32_t* out) {
    *out = multiply(a, b);
}

} // namespace

void probe_bf16_multiply(const Card&) {
    std::uint32_t* out = device_array<std::uint32_t>(1 << 16);
    long long* clocks = device_array<long long>(1024);
    // Lower half: subnormal input 0x0040 times 1. Upper half: 2^-120 * 2^-10 = 2^-130, subnormal.
    product_kernel<<<1, 1>>>(0x03800040u, 0x3a803f80u, out);
    PROBE_CHECK(cudaGetLastError());
    std::uint32_t product = 0;
    PROBE_CHECK(cudaMemcpy(&product, out, 4, cudaMemcpyDeviceToHost));
    row("bf16x2 multiply", "subnormal input kept (1: yes)", (product & 0xffffu) == 0x0040u, "");
    row("bf16x2 multiply", "subnormal product kept (1: yes)", product >> 16 == 0x0008u, "");

    constexpr int kThreads = 1024;
    rate_kernel<<<1, kThreads>>>(0x3f803f80u, out, clocks);
    rate_kernel<<<1, kThreads>>>(0x3f803f80u, out, clocks);
    PROBE_CHECK(cudaGetLastError());
    long long elapsed = 0;
    PROBE_CHECK(cudaMemcpy(&elapsed, clocks, sizeof elapsed, cudaMemcpyDeviceToHost));
    row("bf16x2 multiply", "instructions a clock and multiprocessor, in lanes",
        static_cast<double>(kThreads) * kChains * kSteps / static_cast<double>(elapsed), "");
    PROBE_CHECK(cudaFree(out));
    PROBE_CHECK(cudaFree(clocks));
}

} // namespace lr::probes
