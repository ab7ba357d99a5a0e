// SPDX-License-Identifier: Apache-2.0
#include "cuda/detail/launch.h"
#include "cuda/smoke.h"
#include "numerics/bf16.h"

#include <algorithm>
#include <cuda_bf16.h>
#include <vector>

namespace lr::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocks = 132 * 8;               // full residency on 132 multiprocessors
constexpr std::int64_t kElements = 48'000'003; // 3 x 96 MB: past any L2; odd, so a tail exists
constexpr int kRuns = 9;

__global__ void vector_add_kernel(const __nv_bfloat16* a, const __nv_bfloat16* b,
                                  __nv_bfloat16* out, std::int64_t n) {
    const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
    for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += stride)
        out[i] = __float2bfloat16_rn(__bfloat162float(a[i]) + __bfloat162float(b[i]));
}

// All 65536 codes in a mixed order, without NaN and infinity (whose payloads are not compared).
std::vector<std::uint16_t> codes(std::uint32_t factor) {
    std::vector<std::uint16_t> values(static_cast<std::size_t>(kElements));
    std::uint32_t state = factor;
    for (std::uint16_t& value : values) {
        state = state * 1664525u + factor;
        value = static_cast<std::uint16_t>(state >> 16);
        if ((value & 0x7f80u) == 0x7f80u)
            value &= 0xbfffu;
    }
    return values;
}

Result<double> median_us(const std::uint16_t* a, const std::uint16_t* b, std::uint16_t* out,
                         Stream stream) {
    cudaEvent_t start = nullptr, stop = nullptr;
    CUDA_CHECK(cudaEventCreate(&start));
    CUDA_CHECK(cudaEventCreate(&stop));
    std::vector<double> times;
    for (int run = 0; run < kRuns; ++run) {
        CUDA_CHECK(cudaEventRecord(start, detail::native(stream)));
        LR_TRY(vector_add(a, b, out, kElements, stream));
        CUDA_CHECK(cudaEventRecord(stop, detail::native(stream)));
        CUDA_CHECK(cudaEventSynchronize(stop));
        float milliseconds = 0;
        CUDA_CHECK(cudaEventElapsedTime(&milliseconds, start, stop));
        times.push_back(1e3 * static_cast<double>(milliseconds));
    }
    CUDA_CHECK(cudaEventDestroy(start));
    CUDA_CHECK(cudaEventDestroy(stop));
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

void compare(const std::vector<std::uint16_t>& a, const std::vector<std::uint16_t>& b,
             const std::vector<std::uint16_t>& got, SmokeResult& result) {
    for (std::size_t i = 0; i < got.size(); ++i) {
        const float sum = numerics::decode_bf16(a[i]) + numerics::decode_bf16(b[i]);
        if (got[i] == numerics::encode_bf16(sum))
            continue;
        if (result.wrong++ == 0)
            result.first_wrong = static_cast<std::int64_t>(i);
    }
}

} // namespace

Status vector_add(const std::uint16_t* a, const std::uint16_t* b, std::uint16_t* out,
                  std::int64_t n, Stream stream) {
    if (n == 0)
        return {};
    const auto blocks = std::min<std::int64_t>((n + kThreads - 1) / kThreads, kBlocks);
    return detail::launch(
        "vector_add", vector_add_kernel, {static_cast<unsigned>(blocks), kThreads}, stream,
        reinterpret_cast<const __nv_bfloat16*>(a), reinterpret_cast<const __nv_bfloat16*>(b),
        reinterpret_cast<__nv_bfloat16*>(out), n);
}

Result<SmokeResult> run_smoke(int device) {
    CUDA_CHECK(cudaSetDevice(device));
    const std::vector<std::uint16_t> a = codes(2654435761u), b = codes(40503u * 2 + 1);
    const std::size_t bytes = 2 * a.size();
    LR_TRY_ASSIGN(StreamOwner owner, StreamOwner::create());
    const Stream stream = owner.get();
    LR_TRY_ASSIGN(DeviceBuffer device_a, DeviceBuffer::allocate(bytes));
    LR_TRY_ASSIGN(DeviceBuffer device_b, DeviceBuffer::allocate(bytes));
    LR_TRY_ASSIGN(DeviceBuffer device_out, DeviceBuffer::allocate(bytes));
    LR_TRY(device_a.upload(a.data(), stream));
    LR_TRY(device_b.upload(b.data(), stream));

    const auto* in_a = reinterpret_cast<const std::uint16_t*>(device_a.data());
    const auto* in_b = reinterpret_cast<const std::uint16_t*>(device_b.data());
    auto* out = reinterpret_cast<std::uint16_t*>(device_out.data());
    SmokeResult result;
    result.elements = kElements;
    LR_TRY_ASSIGN(result.us, median_us(in_a, in_b, out, stream));
    result.gb_per_s = 1e-3 * static_cast<double>(3 * bytes) / result.us;

    std::vector<std::uint16_t> got(a.size());
    LR_TRY(device_out.download(got.data(), stream));
    compare(a, b, got, result);
    return result;
}

} // namespace lr::cuda
