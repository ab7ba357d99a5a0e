// SPDX-License-Identifier: Apache-2.0
//
// tests/experts/worked_example.h: the example that the tests of this folder work through: two local
// experts of capacity 128 with 70 and 12 live rows, D = 256, I = 128, tiles of 64 x 128 x 128.
#pragma once

#include "experts/problem.h"

namespace lr::experts {

inline Problem worked_problem(std::vector<std::int32_t> counts = {70, 12}) {
    Problem problem;
    problem.routing = deal_routing(counts, 128, 2);
    problem.capacity = 128;
    problem.hidden = 256;
    problem.width = 128;
    problem.order = RowOrder::kSmallBatch;
    return problem;
}

} // namespace lr::experts
