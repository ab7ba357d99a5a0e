// SPDX-License-Identifier: Apache-2.0
//
// experts/micro_batch.h: what a batch costs whole, and what it costs as two micro-batches that are
// to overlap (two-batch overlap): work that overlap can hide in time, but not take away.
//
// The halves align their experts' rows each for itself, walk their own capacity, launch their own
// kernels, and read the weights of every expert that both of them touch twice. So a split pays when
// the communication that it hides exceeds
//
//   exposed > [moe(first) + moe(second) - moe(whole)] + more launches * launch time
//
// plus the same difference of everything else that is split (attention), which is not known here.
// moe() is the floor of work.h: a lower bound, so the break-even is one too.
#pragma once

#include "experts/load.h"
#include "experts/schedule.h"
#include "experts/work.h"

namespace lr::experts {

// One batch, or several together.
struct BatchCost {
    std::int64_t tokens = 0;
    std::int64_t live_rows = 0;
    std::int64_t allocated_rows = 0; // capacity that is set aside, and walked where stages walk it
    std::int64_t blocks = 0;         // computing row blocks
    std::int64_t covered_rows = 0;
    std::int64_t tiles = 0;        // computing programs of one GEMM, gate and up
    std::int64_t rounds = 0;       // of the problem's CTAs, one batch after the other
    std::int64_t launches = 0;     // one for each stage
    std::int64_t experts = 0;      // with rows; an expert of two batches counts twice
    double expected_experts = 0;   // from the load
    std::int64_t weight_bytes = 0; // once for each of `experts`
    double expected_weight_bytes = 0;
    std::int64_t activation_bytes = 0; // that the stages move
    double floor_seconds = 0;

    double fill() const;
    BatchCost& operator+=(const BatchCost& other);
};
BatchCost batch_cost(const Problem& problem, const Load& load, const Machine& machine);

struct Split {
    BatchCost whole, first, second, halves; // halves: first and second together
};
// The same problem with the routing of each part; `first` and `second` have the whole's experts,
// and their counts add up to it (checked). What else the halves share is the whole's.
// kInvalidArgument otherwise.
Result<Split> split_batch(const Problem& whole, const Routing& first, const Routing& second,
                          const Load& load, const Machine& machine);

// Communication, in seconds, that the split must hide to be worth it; negative: it costs nothing.
double break_even_seconds(const Split& split, double launch_seconds);

// Three runs of the same work, any unit of time: A whole, B split and one half after the other, C
// split and overlapped.
struct SplitTimes {
    double whole = 0, serial = 0, overlapped = 0;
    double tax() const { return serial - whole; }       // T_B - T_A: what splitting costs
    double gain() const { return serial - overlapped; } // T_B - T_C: what overlap brings back, net
    bool pays() const { return gain() > tax(); }
};

// after / before - 1. Requires before != 0.
double relative_change(double before, double after);

} // namespace lr::experts
