// SPDX-License-Identifier: Apache-2.0
//
// cpu/collective/collective.h: collectives of one rank, as copies; several ranks are the
// communicator's.
#pragma once

#include "ops/collective/all_gather.h"
#include "ops/collective/all_reduce.h"

namespace lr {
class ThreadPool;
}

namespace lr::cpu {

void all_reduce(const ops::AllReduceArgs& args, ThreadPool& pool);
void all_gather(const ops::AllGatherArgs& args, ThreadPool& pool);

} // namespace lr::cpu
