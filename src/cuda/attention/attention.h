// SPDX-License-Identifier: Apache-2.0
//
// cuda/attention/attention.h: launchers of the ops in ops/attention/, as cuda/run.h calls them.
#pragma once

#include "core/status.h"
#include "cuda/run.h"
#include "ops/any_op.h"

namespace lr::cuda {

Status qk_norm_rope_gate(const ops::QkNormRopeGateArgs& args, const Lane& lane);
Status kv_store(const ops::KvStoreArgs& args, const Lane& lane);
Status sigmoid_gate(const ops::SigmoidGateArgs& args, const Lane& lane);

// Prefill steps give a workspace (the traced graph's node 6), decode steps do not: that decides
// which of the two kernels runs, never the number of rows. Decode keeps its partial results in the
// lane's scratch.
Status attention(const ops::AttentionArgs& args, const Lane& lane);
std::int64_t attention_scratch_bytes(const ops::AttentionArgs& args);

} // namespace lr::cuda
