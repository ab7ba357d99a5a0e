// SPDX-License-Identifier: Apache-2.0
//
// cpu/sampling/sampling.h: CPU function of ops/sampling. It runs the contract in its op's header;
// arguments have passed that op's check.
#pragma once

#include "ops/sampling/sample.h"

namespace lr {
class ThreadPool;
}

namespace lr::cpu {

void sample(const ops::SampleArgs& args, ThreadPool& pool);

} // namespace lr::cpu
