// SPDX-License-Identifier: Apache-2.0
//
// cpu/sampling/sampling.h: CPU functions of ops/sampling. Each runs the contract in its op's
// header; arguments have passed that op's check.
#pragma once

#include "ops/sampling/count_tokens.h"
#include "ops/sampling/sample.h"
#include "ops/sampling/token_logprobs.h"

namespace lr {
class ThreadPool;
}

namespace lr::cpu {

void count_tokens(const ops::CountTokensArgs& args, ThreadPool& pool);
void sample(const ops::SampleArgs& args, ThreadPool& pool);
void token_logprobs(const ops::TokenLogprobsArgs& args, ThreadPool& pool);

} // namespace lr::cpu
