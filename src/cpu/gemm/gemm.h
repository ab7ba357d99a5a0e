// SPDX-License-Identifier: Apache-2.0
//
// cpu/gemm/gemm.h: CPU implementations of ops/gemm. Contracts are in the op headers; arguments have
// passed check().
#pragma once

#include "core/thread_pool.h"
#include "ops/gemm/gather_rows.h"
#include "ops/gemm/linear.h"
#include "ops/gemm/linear_splitk.h"
#include "ops/gemm/splitk_reduce.h"

namespace lr::cpu {

void linear(const ops::LinearArgs& args, ThreadPool& pool);
void linear_splitk(const ops::LinearSplitkArgs& args, ThreadPool& pool);
void splitk_reduce(const ops::SplitkReduceArgs& args, ThreadPool& pool);
void gather_rows(const ops::GatherRowsArgs& args, ThreadPool& pool);

} // namespace lr::cpu
