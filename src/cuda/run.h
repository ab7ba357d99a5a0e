// SPDX-License-Identifier: Apache-2.0
//
// cuda/run.h: runs one op on the GPU: the whole table of the CUDA backend.
//
// The arguments are those of ops/any_op.h, have passed their check(), and all of their memory is on
// the current device. A weight is bound there in the form that cuda/weights.h makes. run() enqueues
// only: no allocation, synchronisation or host read, so that a stream under capture takes it.
#pragma once

#include "core/status.h"
#include "cuda/stream.h"
#include "ops/any_op.h"

#include <cstdint>

namespace lr::cuda {

// Where a launch goes. Launches that may run at the same time have their own scratch.
struct Lane {
    Stream stream;
    std::byte* scratch = nullptr; // 256-byte aligned
    std::int64_t scratch_bytes = 0;
};

// kUnsupported names what the CUDA code does not have yet: an op, a dtype, a format, a shape.
Status run(const ops::AnyArgs& args, const Lane& lane);

// What run() needs of lane.scratch for these arguments; reads dtypes and shapes only.
std::int64_t scratch_bytes(const ops::AnyArgs& args);

} // namespace lr::cuda
