// SPDX-License-Identifier: Apache-2.0
//
// cpu/experts/experts.h: CPU implementations of ops/experts. Contracts are in the op headers;
// arguments have passed check().
#pragma once

#include "core/thread_pool.h"
#include "ops/experts/experts_down.h"
#include "ops/experts/experts_gate_up.h"
#include "ops/experts/finalize.h"
#include "ops/experts/routing_indices.h"
#include "ops/experts/routing_scores.h"
#include "ops/experts/shared_gate_merge.h"
#include "ops/experts/silu_mul.h"

namespace lr::cpu {

void routing_scores(const ops::RoutingScoresArgs& args, ThreadPool& pool);
// The weights alone, by the same formula, for ids that are there already (live rows).
void routing_weights(const ops::RoutingScoresArgs& args);
void routing_indices(const ops::RoutingIndicesArgs& args, ThreadPool& pool);
void experts_gate_up(const ops::ExpertsGateUpArgs& args, ThreadPool& pool);
void experts_down(const ops::ExpertsDownArgs& args, ThreadPool& pool);
void finalize(const ops::FinalizeArgs& args, ThreadPool& pool);
void silu_mul(const ops::SiluMulArgs& args, ThreadPool& pool);
void shared_gate_merge(const ops::SharedGateMergeArgs& args, ThreadPool& pool);

} // namespace lr::cpu
