// SPDX-License-Identifier: Apache-2.0
//
// With a GPU these tests use it. Without a driver, or in a build without CUDA, they hold the
// program to its promise: one clear line, no crash. They never skip.
#include "core/version.h"
#include "cuda/device.h"
#include "cuda/run.h"
#include "cuda/smoke.h"
#include "cuda/stream.h"
#include "numerics/bf16.h"

#include <gtest/gtest.h>

#include <string>
#include <unistd.h>
#include <vector>

namespace lr::cuda {
namespace {

constexpr bool kBuiltWithCuda = kCudaArchitectures[0] != '\0';

// The driver's control file: asked instead of the code under test.
bool driver_is_loaded() {
    return access("/dev/nvidiactl", F_OK) == 0;
}

bool gpu_expected() {
    return kBuiltWithCuda && driver_is_loaded();
}

// Without a GPU, every entry point fails with this.
void expect_clear_refusal(const Status& status) {
    EXPECT_EQ(status.code(), kBuiltWithCuda ? Code::kNotFound : Code::kUnsupported);
    EXPECT_EQ(status.message(),
              kBuiltWithCuda ? "no CUDA driver on this machine" : "this build has no CUDA");
}

template <typename T> Result<DeviceBuffer> to_device(const std::vector<T>& host) {
    LR_TRY_ASSIGN(DeviceBuffer buffer, DeviceBuffer::allocate(host.size() * sizeof(T)));
    LR_TRY(buffer.upload(host.data(), {}));
    return buffer;
}

TEST(CudaDevice, ListsEveryGpuOrSaysWhyThereIsNone) {
    const Result<DeviceList> list = list_devices();
    if (!gpu_expected())
        return expect_clear_refusal(list ? Status() : list.error());
    ASSERT_TRUE(list) << list.error().message();
    ASSERT_FALSE(list->devices.empty());
    EXPECT_NE(list->driver.find('.'), std::string::npos);
    for (const DeviceInfo& device : list->devices) {
        EXPECT_FALSE(device.name.empty());
        EXPECT_GT(device.multiprocessors, 0);
        EXPECT_GT(device.memory_bytes, device.free_bytes);
        EXPECT_GT(device.free_bytes, 0);
        EXPECT_GT(device.l2_bytes, 1 << 20);
        EXPECT_EQ(device.refusal.empty(), device.major == 9 && device.minor == 0);
    }
}

TEST(CudaDevice, SmokeAddsVectorsToTheLastBit) {
    const Result<SmokeResult> smoke = run_smoke(0);
    if (!gpu_expected())
        return expect_clear_refusal(smoke ? Status() : smoke.error());
    ASSERT_TRUE(smoke) << smoke.error().message();
    EXPECT_GT(smoke->elements, 1'000'000);
    EXPECT_EQ(smoke->wrong, 0) << "first at " << smoke->first_wrong;
    EXPECT_GT(smoke->gb_per_s, 0) << "a figure, not a promise: a sanitizer makes it any number";
    RecordProperty("us", fmt::format("{:.1f}", smoke->us));
    RecordProperty("gb_per_s", fmt::format("{:.0f}", smoke->gb_per_s));
}

TEST(CudaDevice, SmokeOnAMissingDeviceIsAnError) {
    const Result<SmokeResult> smoke = run_smoke(4096);
    ASSERT_FALSE(smoke);
    EXPECT_FALSE(smoke.error().message().empty());
    EXPECT_EQ(smoke.error().message().find('\n'), std::string::npos);
}

TEST(CudaDevice, AllocationBeyondAllMemoryIsAnErrorAndLeavesTheDeviceUsable) {
    const Result<DeviceBuffer> huge = DeviceBuffer::allocate(std::size_t{1} << 50);
    ASSERT_FALSE(huge);
    if (!gpu_expected())
        return expect_clear_refusal(huge.error());
    EXPECT_EQ(huge.error().code(), Code::kResourceExhausted);
    EXPECT_TRUE(DeviceBuffer::allocate(1 << 20));
    EXPECT_TRUE(synchronize({}).ok());
}

TEST(CudaNorm, EmbeddingLookupCopiesLiveRowsAndZeroesTheOthers) {
    if (!gpu_expected())
        return expect_clear_refusal(DeviceBuffer::allocate(16).error());
    constexpr std::int64_t kRows = 5, kWidth = 40, kVocabulary = 7;
    std::vector<std::uint16_t> table(kVocabulary * kWidth);
    for (std::size_t i = 0; i < table.size(); ++i)
        table[i] = numerics::encode_bf16(static_cast<float>(i) * 0.25f);
    const std::vector<std::int32_t> ids = {6, -1, 0, 3, 1'000'000};
    const std::vector<std::int32_t> n_live = {4};

    auto device_table = to_device(table), device_ids = to_device(ids), device_n = to_device(n_live);
    auto device_y = to_device(std::vector<std::uint16_t>(kRows * kWidth, 0x7fc0));
    ASSERT_TRUE(device_table && device_ids && device_n && device_y);
    ops::WeightPart part;
    part.data = ConstView(device_table->data(), DType::kBF16, {kVocabulary, kWidth});
    ops::EmbeddingLookupArgs args;
    args.ids = ConstView(device_ids->data(), DType::kI32, {kRows});
    args.n_live = ConstView(device_n->data(), DType::kI32, {1});
    args.table.shape = {kVocabulary, kWidth};
    args.table.parts = {&part, 1};
    args.y = View(device_y->data(), DType::kBF16, {kRows, kWidth});
    ASSERT_TRUE(ops::check(args).ok()) << ops::check(args).message();

    const Status launched = run(args, {});
    ASSERT_TRUE(launched.ok()) << launched.message();
    std::vector<std::uint16_t> y(kRows * kWidth);
    ASSERT_TRUE(device_y->download(y.data(), {}).ok());
    const std::vector<std::int64_t> source = {6, -1, 0, 3, -1};
    for (std::int64_t row = 0; row < kRows; ++row)
        for (std::int64_t d = 0; d < kWidth; ++d) {
            const std::int64_t from = source[static_cast<std::size_t>(row)];
            const std::uint16_t want =
                from < 0 ? std::uint16_t{0} : table[static_cast<std::size_t>(from * kWidth + d)];
            ASSERT_EQ(y[static_cast<std::size_t>(row * kWidth + d)], want) << row << ", " << d;
        }
}

} // namespace
} // namespace lr::cuda
