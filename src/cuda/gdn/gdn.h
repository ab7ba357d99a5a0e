// SPDX-License-Identifier: Apache-2.0
//
// cuda/gdn/gdn.h: launchers of the ops in ops/gdn/, as cuda/run.h calls them.
#pragma once

#include "core/status.h"
#include "cuda/run.h"
#include "ops/any_op.h"

namespace lr::cuda {

// Decode.
Status unpack_conv(const ops::UnpackConvArgs& args, const Lane& lane);
Status recurrent_update(const ops::RecurrentUpdateArgs& args, const Lane& lane);
Status gated_norm(const ops::GatedNormArgs& args, const Lane& lane);

// Prefill.
Status initial_state_mask(const ops::InitialStateMaskArgs& args, const Lane& lane);
Status causal_conv(const ops::CausalConvArgs& args, const Lane& lane);
Status qkv_split(const ops::QkvSplitArgs& args, const Lane& lane);
Status gating(const ops::GatingArgs& args, const Lane& lane);
Status l2norm(const ops::L2normArgs& args, const Lane& lane);
Status chunk_cumsum(const ops::ChunkCumsumArgs& args, const Lane& lane);
Status chunk_kkt_solve(const ops::ChunkKktSolveArgs& args, const Lane& lane);
Status chunk_recompute_wu(const ops::ChunkRecomputeWuArgs& args, const Lane& lane);
Status chunk_state(const ops::ChunkStateArgs& args, const Lane& lane);
Status chunk_output(const ops::ChunkOutputArgs& args, const Lane& lane);

} // namespace lr::cuda
