// SPDX-License-Identifier: Apache-2.0
//
// cpu/norm/norm.h: CPU functions of ops/norm. Each runs the contract in its op's header; arguments
// have passed that op's check.
#pragma once

#include "ops/norm/add_rmsnorm.h"
#include "ops/norm/embedding_lookup.h"
#include "ops/norm/zero_fill.h"

namespace lr {
class ThreadPool;
}

namespace lr::cpu {

void embedding_lookup(const ops::EmbeddingLookupArgs& args, ThreadPool& pool);
void add_rmsnorm(const ops::AddRmsnormArgs& args, ThreadPool& pool);
void zero_fill(const ops::ZeroFillArgs& args, ThreadPool& pool);

} // namespace lr::cpu
