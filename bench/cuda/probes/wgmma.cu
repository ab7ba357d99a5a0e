// SPDX-License-Identifier: Apache-2.0
//
// Clocks of one warpgroup matrix instruction with eight columns: the shape of decode, where weights
// are the 64 rows and tokens the columns.
#include <cstdint>

#include "bench/cuda/probes/probe.h"

namespace lr::probes {
namespace {

enum class Kind { kBf16, kFp8 };
constexpr int kInstructions = 512;

// Any layout will do for a rate: no swizzle, core matrices 128 bytes apart.
__device__ std::uint64_t descriptor(const void* shared) {
    const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
    return static_cast<std::uint64_t>((address & 0x3ffff) >> 4) | std::uint64_t{8} << 16 |
           std::uint64_t{16} << 32;
}

template <Kind kind> __device__ void multiply(float (&d)[4], std::uint64_t a, std::uint64_t b) {
    if constexpr (kind == Kind::kBf16)
        asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0,%1,%2,%3}, %4, %5, "
                     "1, 1, 1, 0, 0;"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "l"(a), "l"(b));
    else
        asm volatile("wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3 {%0,%1,%2,%3}, %4, %5, "
                     "1, 1, 1;"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "l"(a), "l"(b));
}

template <Kind kind> __global__ void rate_kernel(float* out, long long* clocks) {
    __shared__ __align__(1024) std::uint8_t tile[16384];
    for (int i = threadIdx.x; i < 16384; i += blockDim.x)
        tile[i] = 0x38;
    __syncthreads();
    float d[4] = {};
    const std::uint64_t a = descriptor(tile), b = descriptor(tile + 8192);
    const long long start = clock64();
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    for (int i = 0; i < kInstructions; ++i)
        multiply<kind>(d, a, b);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    const long long stop = clock64();
    out[threadIdx.x] = d[0] + d[1] + d[2] + d[3];
    if (threadIdx.x == 0)
        clocks[0] = stop - start;
}

template <Kind kind> void rates(const char* name, float* out, long long* clocks) {
    for (const int groups : {1, 2, 4}) {
        long long elapsed = 0;
        for (int warm = 0; warm < 2; ++warm) {
            rate_kernel<kind><<<1, 128 * groups>>>(out, clocks);
            PROBE_CHECK(cudaGetLastError());
            PROBE_CHECK(cudaMemcpy(&elapsed, clocks, sizeof elapsed, cudaMemcpyDeviceToHost));
        }
        row("wgmma",
            std::string(name) + ", " + std::to_string(groups) + " warpgroups, each instruction",
            static_cast<double>(elapsed) / (kInstructions * groups), "clocks");
    }
}

} // namespace

void probe_wgmma(const Card&) {
    float* out = device_array<float>(1024);
    long long* clocks = device_array<long long>(8);
    rates<Kind::kBf16>("m64n8k16 bf16", out, clocks);
    rates<Kind::kFp8>("m64n8k32 e4m3", out, clocks);
    PROBE_CHECK(cudaFree(out));
    PROBE_CHECK(cudaFree(clocks));
}

} // namespace lr::probes
