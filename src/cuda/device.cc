// SPDX-License-Identifier: Apache-2.0
#include "cuda/device.h"

#include "core/version.h"
#include "cuda/detail/check.h"

namespace lr::cuda {
namespace {

std::string version_text(int version) {
    return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

// Both calls work without a driver, whose version is then 0.
Status explain_driver() {
    int driver = 0, runtime = 0;
    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
        return fail(Code::kNotFound, "no CUDA driver on this machine");
    cudaRuntimeGetVersion(&runtime);
    return fail(Code::kNotFound, "the CUDA driver is too old: expected support for CUDA {}, got {}",
                version_text(runtime), version_text(driver));
}

// The binary holds code for one architecture family ("90a-real") and no PTX to translate.
std::string refusal(const DeviceInfo& device) {
    if (device.major == 9 && device.minor == 0)
        return "";
    return fmt::format("compute capability {}.{}: expected 9.0, built for {}", device.major,
                       device.minor, kCudaArchitectures);
}

Result<DeviceInfo> describe(int index) {
    cudaDeviceProp properties{};
    CUDA_CHECK(cudaGetDeviceProperties(&properties, index));
    DeviceInfo device;
    device.index = index;
    device.name = properties.name;
    device.major = properties.major;
    device.minor = properties.minor;
    device.multiprocessors = properties.multiProcessorCount;
    device.memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem);
    device.l2_bytes = properties.l2CacheSize;
    std::size_t free_bytes = 0, total_bytes = 0;
    CUDA_CHECK(cudaSetDevice(index));
    CUDA_CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
    device.free_bytes = static_cast<std::int64_t>(free_bytes);
    device.refusal = refusal(device);
    return device;
}

} // namespace

Result<DeviceList> list_devices() {
    int driver = 0, runtime = 0, count = 0;
    CUDA_CHECK(cudaDriverGetVersion(&driver));
    CUDA_CHECK(cudaRuntimeGetVersion(&runtime));
    CUDA_CHECK(cudaGetDeviceCount(&count));
    DeviceList list{version_text(driver), version_text(runtime), {}};
    for (int index = 0; index < count; ++index) {
        LR_TRY_ASSIGN(DeviceInfo device, describe(index));
        list.devices.push_back(std::move(device));
    }
    CUDA_CHECK(cudaSetDevice(0));
    return list;
}

namespace detail {

Status error(cudaError_t code, const char* call) {
    if (code == cudaErrorInsufficientDriver)
        return explain_driver();
    if (code == cudaErrorNoDevice)
        return fail(Code::kNotFound,
                    "a CUDA driver, but no GPU is visible (see CUDA_VISIBLE_DEVICES)");
    const Code kind =
        code == cudaErrorMemoryAllocation ? Code::kResourceExhausted : Code::kInternal;
    // Clears an error that the runtime would otherwise report again from the next call.
    cudaGetLastError();
    return fail(kind, "cuda: {}: {} ({})", call, cudaGetErrorString(code), cudaGetErrorName(code));
}

} // namespace detail
Status use_device(int index) {
    int count = 0;
    CUDA_CHECK(cudaGetDeviceCount(&count));
    if (index < 0 || index >= count)
        return fail(Code::kNotFound, "cuda:{}: expected a GPU of 0..{}", index, count - 1);
    int major = 0, minor = 0;
    CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index));
    CUDA_CHECK(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, index));
    DeviceInfo device;
    device.major = major;
    device.minor = minor;
    if (const std::string reason = refusal(device); !reason.empty())
        return fail(Code::kUnsupported, "cuda:{}: {}", index, reason);
    CUDA_CHECK(cudaSetDevice(index));
    return {};
}

} // namespace lr::cuda
