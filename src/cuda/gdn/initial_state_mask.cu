// SPDX-License-Identifier: Apache-2.0
#include "cuda/detail/launch.h"
#include "cuda/detail/operand.h"
#include "cuda/gdn/gdn.h"

#include <cstdint>

namespace lr::cuda {
namespace {

constexpr int kThreads = 128;

__global__ void initial_state_mask_kernel(const std::int32_t* prefix_len, std::int32_t* mask,
                                          std::int64_t count) {
    detail::wait_for_inputs();
    const std::int64_t b = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
    if (b < count)
        mask[b] = prefix_len[b] > 0 ? 1 : 0;
}

} // namespace

Status initial_state_mask(const ops::InitialStateMaskArgs& args, const Lane& lane) {
    const std::int64_t count = args.mask.rows();
    if (count == 0)
        return {};
    return detail::launch("initial_state_mask", initial_state_mask_kernel,
                          {detail::blocks_for(count, kThreads), kThreads}, lane.stream,
                          detail::values<const std::int32_t>(args.prefix_len),
                          detail::values<std::int32_t>(args.mask), count);
}

} // namespace lr::cuda
