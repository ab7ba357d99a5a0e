// SPDX-License-Identifier: Apache-2.0
//
// cuda/norm/norm.h: launchers of the ops in ops/norm/, as cuda/run.h calls them.
#pragma once

#include "core/status.h"
#include "cuda/run.h"
#include "ops/norm/add_rmsnorm.h"
#include "ops/norm/embedding_lookup.h"
#include "ops/norm/zero_fill.h"

namespace lr::cuda {

Status embedding_lookup(const ops::EmbeddingLookupArgs& args, const Lane& lane);
Status add_rmsnorm(const ops::AddRmsnormArgs& args, const Lane& lane);
Status zero_fill(const ops::ZeroFillArgs& args, const Lane& lane);

} // namespace lr::cuda
