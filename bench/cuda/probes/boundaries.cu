// SPDX-License-Identifier: Apache-2.0
//
// What a boundary between dependent kernels of a graph costs, and how much of it weight loads that
// are issued before the wait can hide.
#include "bench/cuda/probes/probe.h"

namespace lr::probes {
namespace {

enum class Dependence { kPlain, kLateTrigger, kEarlyTrigger };

constexpr int kThreads = 256;

// Each CTA adds one to a value of its own that the kernel before it wrote.
template <Dependence kind> __global__ void tiny_kernel(int* values) {
    if constexpr (kind == Dependence::kEarlyTrigger)
        asm volatile("griddepcontrol.launch_dependents;");
    if constexpr (kind != Dependence::kPlain)
        asm volatile("griddepcontrol.wait;" ::: "memory");
    if (threadIdx.x == 0)
        ++values[blockIdx.x * 32];
}

template <Dependence kind> double chain_us(int kernels, int ctas, int* values) {
    return graph_us([&](cudaStream_t stream) {
        for (int i = 0; i < kernels; ++i)
            launch(stream, kind != Dependence::kPlain && i > 0, ctas, kThreads, 0,
                   tiny_kernel<kind>, values);
    });
}

// Time of one more kernel in a long chain: what the graph's own start costs falls out.
template <Dependence kind> double boundary_us(int ctas, int* values) {
    return (chain_us<kind>(80, ctas, values) - chain_us<kind>(16, ctas, values)) / 64;
}

constexpr int kVectors = 8; // 16-byte loads of one thread that are issued before the wait

// Reads `count` 16-byte vectors of weights and adds a product with the input, which the kernel
// before it wrote.
template <bool early>
__global__ void weight_kernel(const uint4* weights, int count, const float* in, float* out) {
    const int stride = gridDim.x * blockDim.x;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    uint4 first[kVectors] = {};
    if constexpr (early) {
#pragma unroll
        for (int v = 0; v < kVectors; ++v)
            if (i + v * stride < count)
                first[v] = __ldcs(weights + i + v * stride);
        asm volatile("griddepcontrol.launch_dependents;");
        asm volatile("griddepcontrol.wait;" ::: "memory");
    }
    const float x = *reinterpret_cast<const volatile float*>(in);
    unsigned sum = 0;
    if constexpr (early) {
#pragma unroll
        for (int v = 0; v < kVectors; ++v)
            sum += first[v].x ^ first[v].y ^ first[v].z ^ first[v].w;
        i += kVectors * stride;
    }
    for (; i < count; i += kVectors * stride) {
        uint4 w[kVectors] = {};
#pragma unroll
        for (int v = 0; v < kVectors; ++v)
            if (i + v * stride < count)
                w[v] = __ldcs(weights + i + v * stride);
#pragma unroll
        for (int v = 0; v < kVectors; ++v)
            sum += w[v].x ^ w[v].y ^ w[v].z ^ w[v].w;
    }
    if (sum == 0x12345678u) // never, but the compiler cannot know
        *out = x + 1.0f;
}

} // namespace

void probe_boundaries(const Card& card) {
    int* values = device_array<int>(32 * 4096);
    for (const int ctas : {1, card.multiprocessors, 4 * card.multiprocessors}) {
        const std::string grid = std::to_string(ctas) + " CTAs";
        row("boundary", "plain, " + grid, boundary_us<Dependence::kPlain>(ctas, values), "us");
        row("boundary", "PDL, implicit trigger, " + grid,
            boundary_us<Dependence::kLateTrigger>(ctas, values), "us");
        row("boundary", "PDL, early trigger, " + grid,
            boundary_us<Dependence::kEarlyTrigger>(ctas, values), "us");
    }
    for (const int kernels : {4, 8, 16}) {
        const std::string chain = std::to_string(kernels) + " tiny kernels, whole replay";
        row("chain", "plain, " + chain,
            chain_us<Dependence::kPlain>(kernels, card.multiprocessors, values), "us");
        row("chain", "PDL early, " + chain,
            chain_us<Dependence::kEarlyTrigger>(kernels, card.multiprocessors, values), "us");
    }
    PROBE_CHECK(cudaFree(values));
}

void probe_weight_chains(const Card& card) {
    constexpr std::size_t kLayerBytes = 68'000'000; // a 35B layer at one token, 35B FP8
    constexpr int kCopies = 4;                      // past the L2: each replay reads other memory
    uint4* weights = device_array<uint4>(kCopies * kLayerBytes / 16);
    float* values = device_array<float>(64);
    for (const int kernels : {4, 6, 11}) {
        const int count = static_cast<int>(kLayerBytes / 16) / kernels;
        const auto chain = [&](bool early) {
            return graph_us([&](cudaStream_t stream) {
                       for (int copy = 0; copy < kCopies; ++copy)
                           for (int k = 0; k < kernels; ++k)
                               launch(stream, early && copy + k > 0, 2 * card.multiprocessors, 512,
                                      0, early ? weight_kernel<true> : weight_kernel<false>,
                                      weights + (std::size_t{0} + copy * kernels + k) * count,
                                      count, values, values + 32);
                   }) /
                   kCopies;
        };
        const std::string what = "68 MB in " + std::to_string(kernels) + " launches";
        for (const bool early : {false, true}) {
            const double us = chain(early);
            row("weight chain", what + (early ? ", PDL and early loads" : ", plain"), us, "us");
            row("weight chain", what + (early ? ", PDL and early loads" : ", plain"),
                static_cast<double>(kLayerBytes) / us * 1e-6, "TB/s");
        }
    }
    PROBE_CHECK(cudaFree(weights));
    PROBE_CHECK(cudaFree(values));
}

} // namespace lr::probes
