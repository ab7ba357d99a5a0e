// SPDX-License-Identifier: Apache-2.0
#include "cuda/detail/launch.h"
#include "cuda/timeline.h"

namespace lr::cuda {
namespace {

__device__ std::uint64_t global_time() {
    std::uint64_t now = 0;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    return now;
}

__global__ void hold_kernel(std::uint64_t nanoseconds) {
    const std::uint64_t end = global_time() + nanoseconds;
    while (global_time() < end)
        __nanosleep(1000);
}

cudaEvent_t native_event(void* event) {
    return static_cast<cudaEvent_t>(event);
}

} // namespace

Result<Timeline> Timeline::create(std::size_t marks) {
    Timeline timeline;
    for (std::size_t i = 0; i < marks; ++i) {
        cudaEvent_t event = nullptr;
        CUDA_CHECK(cudaEventCreate(&event));
        timeline.events_.push_back(event);
    }
    return timeline;
}

Timeline::~Timeline() {
    for (void* event : events_)
        cudaEventDestroy(native_event(event));
}

Status Timeline::mark(Stream stream) {
    if (used_ == events_.size())
        return fail(Code::kResourceExhausted, "cuda: timeline: expected at most {} marks", used_);
    CUDA_CHECK(cudaEventRecord(native_event(events_[used_++]), detail::native(stream)));
    return {};
}

Result<std::vector<std::int64_t>> Timeline::nanoseconds() const {
    std::vector<std::int64_t> times;
    for (std::size_t i = 0; i < used_; ++i) {
        float milliseconds = 0;
        CUDA_CHECK(cudaEventSynchronize(native_event(events_[i])));
        CUDA_CHECK(cudaEventElapsedTime(&milliseconds, native_event(events_[0]),
                                        native_event(events_[i])));
        times.push_back(static_cast<std::int64_t>(static_cast<double>(milliseconds) * 1e6));
    }
    return times;
}

Status hold(Stream stream, std::int64_t nanoseconds) {
    return detail::launch("hold", hold_kernel, {1, 1}, stream,
                          static_cast<std::uint64_t>(nanoseconds));
}

} // namespace lr::cuda
