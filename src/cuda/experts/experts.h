// SPDX-License-Identifier: Apache-2.0
//
// cuda/experts/experts.h: launchers of the ops in ops/experts/, as cuda/run.h calls them.
#pragma once

#include "core/status.h"
#include "cuda/run.h"
#include "ops/any_op.h"

namespace lr::cuda {

Status routing_scores(const ops::RoutingScoresArgs& args, const Lane& lane);
Status routing_indices(const ops::RoutingIndicesArgs& args, const Lane& lane);

// F in bf16 lies in the lane's scratch where f is codes.
Status experts_gate_up(const ops::ExpertsGateUpArgs& args, const Lane& lane);
std::int64_t experts_gate_up_scratch_bytes(const ops::ExpertsGateUpArgs& args);
Status experts_down(const ops::ExpertsDownArgs& args, const Lane& lane);
Status finalize(const ops::FinalizeArgs& args, const Lane& lane);

Status silu_mul(const ops::SiluMulArgs& args, const Lane& lane);
Status shared_gate_merge(const ops::SharedGateMergeArgs& args, const Lane& lane);

} // namespace lr::cuda
