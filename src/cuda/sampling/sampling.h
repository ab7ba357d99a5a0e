// SPDX-License-Identifier: Apache-2.0
//
// cuda/sampling/sampling.h: launchers of the ops in ops/sampling/, as cuda/run.h calls them.
#pragma once

#include "core/status.h"
#include "cuda/run.h"
#include "ops/any_op.h"

namespace lr::cuda {

Status count_tokens(const ops::CountTokensArgs& args, const Lane& lane);

// Draws the CPU's tokens: weights are integers, and no operation on logits is contracted. Logits
// with biases and penalties lie in the lane's scratch.
Status sample(const ops::SampleArgs& args, const Lane& lane);
std::int64_t sample_scratch_bytes(const ops::SampleArgs& args);

Status token_logprobs(const ops::TokenLogprobsArgs& args, const Lane& lane);

} // namespace lr::cuda
