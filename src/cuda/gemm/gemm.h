// SPDX-License-Identifier: Apache-2.0
//
// cuda/gemm/gemm.h: launchers of the ops in ops/gemm/, as cuda/run.h calls them.
#pragma once

#include "core/status.h"
#include "cuda/run.h"
#include "ops/any_op.h"

namespace lr::cuda {

Status linear(const ops::LinearArgs& args, const Lane& lane);
std::int64_t linear_scratch_bytes(const ops::LinearArgs& args);
Status linear_splitk(const ops::LinearSplitkArgs& args, const Lane& lane);
Status splitk_reduce(const ops::SplitkReduceArgs& args, const Lane& lane);
Status gather_rows(const ops::GatherRowsArgs& args, const Lane& lane);

} // namespace lr::cuda
