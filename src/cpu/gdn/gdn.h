// SPDX-License-Identifier: Apache-2.0
//
// cpu/gdn/gdn.h: the CPU reference of the Gated DeltaNet ops. Each function does what the header
// of the same stem in ops/gdn/ promises, on arguments that its check() accepts and that are bound;
// it defines the numbers that other backends are verified against.
#pragma once

#include "ops/gdn/causal_conv.h"
#include "ops/gdn/chunk_cumsum.h"
#include "ops/gdn/chunk_kkt_solve.h"
#include "ops/gdn/chunk_output.h"
#include "ops/gdn/chunk_recompute_wu.h"
#include "ops/gdn/chunk_state.h"
#include "ops/gdn/gated_norm.h"
#include "ops/gdn/gating.h"
#include "ops/gdn/initial_state_mask.h"
#include "ops/gdn/l2norm.h"
#include "ops/gdn/qkv_split.h"
#include "ops/gdn/recurrent_update.h"
#include "ops/gdn/unpack_conv.h"

namespace lr {
class ThreadPool;
}

namespace lr::cpu {

void unpack_conv(const ops::UnpackConvArgs& args, ThreadPool& pool);
void recurrent_update(const ops::RecurrentUpdateArgs& args, ThreadPool& pool);
void gated_norm(const ops::GatedNormArgs& args, ThreadPool& pool);
void initial_state_mask(const ops::InitialStateMaskArgs& args, ThreadPool& pool);
void causal_conv(const ops::CausalConvArgs& args, ThreadPool& pool);
void qkv_split(const ops::QkvSplitArgs& args, ThreadPool& pool);
void gating(const ops::GatingArgs& args, ThreadPool& pool);
void l2norm(const ops::L2normArgs& args, ThreadPool& pool);
void chunk_cumsum(const ops::ChunkCumsumArgs& args, ThreadPool& pool);
void chunk_kkt_solve(const ops::ChunkKktSolveArgs& args, ThreadPool& pool);
void chunk_recompute_wu(const ops::ChunkRecomputeWuArgs& args, ThreadPool& pool);
void chunk_state(const ops::ChunkStateArgs& args, ThreadPool& pool);
void chunk_output(const ops::ChunkOutputArgs& args, ThreadPool& pool);

} // namespace lr::cpu
