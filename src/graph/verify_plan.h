// SPDX-License-Identifier: Apache-2.0
//
// graph/verify_plan.h: proof, without a device, that a plan computes its step.
//
// Nothing that the makers of plans derived is believed: what a launch reads and writes comes from
// the nodes' uses, and order only from lanes, events and PDL waits. The step's node order is the
// meaning of the step: the CPU reference runs it so.
//
//   coverage     each node that does something stands in one launch, or in all of its stages, in
//                order; an alias in none. Each stage may touch all that its node touches
//   events       each is recorded once, by a launch of another lane that is enqueued before those
//                that wait; no launches wait for one another in a cycle; a lane begins with a wait
//                for another (a captured lane is a fork) and all of it ends before the last launch
//                of the main lane, which ends the step
//   order        of two launches that touch one tensor or one state, at least one of them writing,
//                the node that comes first in the step has ended before the other begins
//   materialised what a launch reads and what the host reads was written by a launch, and is
//                swallowed by no fusion
//   launching    a PDL launch directly follows another in its lane; one whose blocks wait for one
//                another is cooperative
//   lifetimes    (with a memory plan) each stored activation and output has an aligned place in the
//                arena; two that share bytes are never alive together; outputs share with nothing
//
// PDL is judged by what it surely orders: a launch that waits is ordered after the one before it in
// its lane; one that does not is ordered after nothing, and hands on no order.
#pragma once

#include "graph/memory_plan.h"
#include "graph/plan.h"

namespace lr::graph {

// kInternal: "plan 8+9: what, where: expected ..., got ...", of the first fault found.
Status verify_plan(const Step& step, const Plan& plan, const MemoryPlan* memory = nullptr);

} // namespace lr::graph
