// SPDX-License-Identifier: Apache-2.0
//
// cuda/weights.h: resident weights in device memory, in the one form that the kernels read.
//
// On the device a weight has one part, whatever the file stored:
//
//   data        [L*N, K] dense: bf16, e4m3, or e2m1 in the order below
//   scale       kFp8Block: f32 [L*N/128, ceil K/128], or [L*N, ceil K/128] where a part of the file
//               is not a multiple of 128 rows;  kNvfp4: e4m3 [L*N, K/16];  else absent
//   row_factor  f32 [L*N], what multiplies a row's dot: channel scale, tensor scale or NVFP4's
//               global factor; absent for kPlain and kFp8Block
//
// Eight E2M1 codes of neighbouring k share 32 bits: code 2j in bits 4j.., code 2j + 1 in bits
// 16 + 4j.., so that one mask takes a pair to its two halves.
#pragma once

#include "core/status.h"
#include "core/thread_pool.h"
#include "cuda/staging.h"
#include "cuda/stream.h"
#include "ops/weight.h"

#include <cstdint>

namespace lr::cuda {

// Kernels expand NVFP4 weights to so much less than their values, which no bf16 overflows on the
// way; row_factor puts it back.
inline constexpr float kNvfp4Lift = 128.0f;

// A weight on its way to the device: its memory and the part that views it.
struct DeviceWeight {
    DeviceBuffer memory;
    ops::WeightPart part;
};

// Copies a weight that is bound in host memory, its rows laid out by all threads of the pool; they
// are on the device after staging.finish(). kUnsupported: plain data that is not bf16.
Result<DeviceWeight> upload(const ops::Weight& weight, Staging& staging, ThreadPool& pool);

} // namespace lr::cuda
