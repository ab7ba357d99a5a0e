// SPDX-License-Identifier: Apache-2.0
//
// cuda/norm/norm.h: launchers of the ops in ops/norm/. A launcher enqueues only; the arguments have
// passed their check(), and all of their memory is on the current device. kUnsupported: a dtype or
// format of the contract that the CUDA code does not have yet, with the list of what it has.
#pragma once

#include "core/status.h"
#include "cuda/stream.h"
#include "ops/norm/embedding_lookup.h"

namespace lr::cuda {

// Plain bf16 table in one part, bf16 rows of D % 8 == 0, 16-byte aligned.
Status embedding_lookup(const ops::EmbeddingLookupArgs& args, Stream stream);

} // namespace lr::cuda
