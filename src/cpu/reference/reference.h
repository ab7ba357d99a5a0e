// SPDX-License-Identifier: Apache-2.0
//
// cpu/reference/reference.h: every op once more, as its header in ops/ defines it and in the
// plainest way: loops over elements in f64, no kernels, no panels, no fixed tree, nothing shared
// with the functions of cpu/ but the codecs of numerics. Beside each result stands how far an f32
// implementation may be from it (cpu/reference/counted.h). It is what `liverow verify` holds every
// backend against; it is slow.
//
// Places that an op does not write (ops/: Bounds) stay as they were.
#pragma once

#include "core/thread_pool.h"
#include "cpu/reference/tensors.h"
#include "ops/any_op.h"

namespace lr::cpu::reference {

// `errors` knows every float tensor and every tensor of codes that the op writes (Errors::open).
// kUnsupported: an op that takes part in a collective of several ranks.
Status run(const ops::AnyArgs& args, Errors& errors, ThreadPool& pool);

// Routing weights of experts that are given: ops/experts/routing_scores.h with args.ids as input.
void routing_weights(const ops::RoutingScoresArgs& args, Errors& errors);

} // namespace lr::cpu::reference
