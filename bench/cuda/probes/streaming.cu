// SPDX-License-Identifier: Apache-2.0
//
// How fast weights reach a consumer that computes with them: plain 128-bit loads, cp.async into a
// ring of shared memory, and bulk copies into one, with 64 to 192 KB on the way per multiprocessor.
#include <cstdint>

#include "bench/cuda/probes/probe.h"

namespace lr::probes {
namespace {

constexpr int kThreads = 256;
constexpr int kStageBytes = 16384;
constexpr int kVectorsPerThread = kStageBytes / 16 / kThreads;

// Eight bf16 weights against eight activations.
__device__ float dot8(uint4 w, const float* x, float sum) {
    const unsigned words[4] = {w.x, w.y, w.z, w.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        sum = fmaf(__uint_as_float(words[i] << 16), x[2 * i], sum);
        sum = fmaf(__uint_as_float(words[i] & 0xffff0000u), x[2 * i + 1], sum);
    }
    return sum;
}

__device__ void load_activations(const float* in, float* x) {
#pragma unroll
    for (int i = 0; i < 8; ++i)
        x[i] = in[(threadIdx.x + i) % 64];
}

__device__ std::uint32_t shared_address(const void* pointer) {
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

// CTA b takes stages b, b + gridDim.x, ...
__global__ void plain_kernel(const uint4* weights, int stages, const float* in, float* out) {
    float x[8], sum = 0;
    load_activations(in, x);
    for (int stage = blockIdx.x; stage < stages; stage += 2 * gridDim.x) {
        uint4 w[2][kVectorsPerThread] = {};
#pragma unroll
        for (int s = 0; s < 2; ++s)
            if (stage + s * static_cast<int>(gridDim.x) < stages)
#pragma unroll
                for (int v = 0; v < kVectorsPerThread; ++v)
                    w[s][v] = __ldcs(weights +
                                     std::int64_t{stage + s * static_cast<int>(gridDim.x)} *
                                         (kStageBytes / 16) +
                                     v * kThreads + threadIdx.x);
#pragma unroll
        for (int s = 0; s < 2; ++s)
#pragma unroll
            for (int v = 0; v < kVectorsPerThread; ++v)
                sum = dot8(w[s][v], x, sum);
    }
    out[blockIdx.x * kThreads + threadIdx.x] = sum;
}

// Each thread reads back what it copied itself: no barrier, only its own groups to wait for.
template <int depth>
__global__ void async_kernel(const uint4* weights, int stages, const float* in, float* out) {
    extern __shared__ __align__(128) std::uint8_t ring[];
    float x[8], sum = 0;
    load_activations(in, x);
    const auto fetch = [&](int slot, int stage) {
        if (stage < stages)
#pragma unroll
            for (int v = 0; v < kVectorsPerThread; ++v)
                asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(
                                 ring + slot * kStageBytes + 16 * (v * kThreads + threadIdx.x))),
                             "l"(weights + std::int64_t{stage} * (kStageBytes / 16) + v * kThreads +
                                 threadIdx.x)
                             : "memory");
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    int next = blockIdx.x;
    for (int slot = 0; slot < depth - 1; ++slot, next += gridDim.x)
        fetch(slot, next);
    int slot = 0;
    for (int stage = blockIdx.x; stage < stages; stage += gridDim.x) {
        asm volatile("cp.async.wait_group %0;" ::"n"(depth - 2) : "memory");
        uint4 w[kVectorsPerThread];
#pragma unroll
        for (int v = 0; v < kVectorsPerThread; ++v)
            w[v] = *reinterpret_cast<const uint4*>(ring + slot * kStageBytes +
                                                   16 * (v * kThreads + threadIdx.x));
        fetch(slot == 0 ? depth - 1 : slot - 1, next); // the slot read one turn ago
        next += gridDim.x;
#pragma unroll
        for (int v = 0; v < kVectorsPerThread; ++v)
            sum = dot8(w[v], x, sum);
        slot = slot + 1 == depth ? 0 : slot + 1;
    }
    out[blockIdx.x * kThreads + threadIdx.x] = sum;
}

__device__ void wait_barrier(std::uint32_t barrier, unsigned parity) {
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n"
                 "}" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}

// One more warp issues bulk copies; the others compute.
template <int depth>
__global__ void bulk_kernel(const uint4* weights, int stages, const float* in, float* out) {
    extern __shared__ __align__(128) std::uint8_t ring[];
    __shared__ __align__(8) std::uint64_t full[depth], empty[depth];
    if (threadIdx.x == 0)
        for (int i = 0; i < depth; ++i) {
            asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(shared_address(full + i)));
            asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(empty + i)),
                         "r"(kThreads / 32));
        }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    __syncthreads();
    int slot = 0;
    unsigned parity = 0;
    const auto advance = [&] {
        if (++slot == depth) {
            slot = 0;
            parity ^= 1;
        }
    };
    if (threadIdx.x >= kThreads) {
        if (threadIdx.x == kThreads)
            for (int stage = blockIdx.x; stage < stages; stage += gridDim.x, advance()) {
                wait_barrier(shared_address(empty + slot), parity ^ 1);
                asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(
                                 shared_address(full + slot)),
                             "r"(kStageBytes)
                             : "memory");
                asm volatile(
                    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                    "[%0], [%1], %2, [%3];" ::"r"(shared_address(ring + slot * kStageBytes)),
                    "l"(weights + std::int64_t{stage} * (kStageBytes / 16)), "r"(kStageBytes),
                    "r"(shared_address(full + slot))
                    : "memory");
            }
        return;
    }
    float x[8], sum = 0;
    load_activations(in, x);
    for (int stage = blockIdx.x; stage < stages; stage += gridDim.x, advance()) {
        wait_barrier(shared_address(full + slot), parity);
#pragma unroll
        for (int v = 0; v < kVectorsPerThread; ++v)
            sum = dot8(*reinterpret_cast<const uint4*>(ring + slot * kStageBytes +
                                                       16 * (v * kThreads + threadIdx.x)),
                       x, sum);
        __syncwarp();
        if (threadIdx.x % 32 == 0)
            asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(shared_address(empty + slot))
                         : "memory");
    }
    out[blockIdx.x * kThreads + threadIdx.x] = sum;
}

struct Stream {
    const uint4* weights;
    const float* in;
    float* out;
    const Card& card;

    using Kernel = void (*)(const uint4*, int, const float*, float*);

    // Reads windows of `bytes`, each in other memory than the one before.
    double run_us(Kernel kernel, int ctas, int threads, std::size_t shared, std::size_t bytes,
                  std::size_t total) const {
        if (shared > 0)
            PROBE_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                             static_cast<int>(shared)));
        const int windows = static_cast<int>(std::min<std::size_t>(total / bytes, 16));
        return graph_us([&](cudaStream_t stream) {
                   for (int w = 0; w < windows; ++w)
                       launch(stream, false, ctas, threads, shared, kernel,
                              weights + static_cast<std::size_t>(w) * (total / windows / 16),
                              static_cast<int>(bytes / kStageBytes), in, out);
               }) /
               windows;
    }
};

template <int depth> void rings(const Stream& stream, std::size_t bytes, std::size_t total) {
    const std::string what = std::to_string(bytes >> 20) + " MiB, " +
                             std::to_string(depth * kStageBytes / 1024) + " KB ring";
    const auto report = [&](const char* how, double us) {
        row("streaming", how + what, static_cast<double>(bytes) / us * 1e-6, "TB/s");
    };
    const int ctas = stream.card.multiprocessors;
    report("cp.async, ",
           stream.run_us(async_kernel<depth>, ctas, kThreads, depth * kStageBytes, bytes, total));
    report("bulk, ", stream.run_us(bulk_kernel<depth>, ctas, kThreads + 32, depth * kStageBytes,
                                   bytes, total));
}

} // namespace

void probe_streaming(const Card& card) {
    constexpr std::size_t kTotal = std::size_t{2} << 30;
    const Stream stream{device_array<uint4>(kTotal / 16), device_array<float>(64),
                        device_array<float>(1 << 20), card};
    for (const std::size_t mib : {4, 8, 32, 128, 1024}) {
        const std::size_t bytes = mib << 20;
        for (const int per_sm : {4, 8})
            row("streaming",
                "plain loads, " + std::to_string(mib) + " MiB, " +
                    std::to_string(per_sm * kThreads) + " threads",
                static_cast<double>(bytes) /
                    stream.run_us(plain_kernel, per_sm * card.multiprocessors, kThreads, 0, bytes,
                                  kTotal) *
                    1e-6,
                "TB/s");
        rings<4>(stream, bytes, kTotal);
        rings<8>(stream, bytes, kTotal);
        rings<12>(stream, bytes, kTotal);
    }
    PROBE_CHECK(cudaFree(const_cast<uint4*>(stream.weights)));
    PROBE_CHECK(cudaFree(const_cast<float*>(stream.in)));
    PROBE_CHECK(cudaFree(stream.out));
}

} // namespace lr::probes
