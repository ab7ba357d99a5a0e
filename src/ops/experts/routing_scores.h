// SPDX-License-Identifier: Apache-2.0
//
// ops/experts/routing_scores.h: the K experts of each token and their weights.
//
// Math      ids[i, 0..K) = the K largest logits[i, :], descending;
//           weights[i, k] = exp(l_k - l_0) / sum_j exp(l_j - l_0), l_k = logits[i, ids[i, k]]
// Shapes    logits [n,E]  n_live [1]  ids,weights [n,K];  K <= E
// Types     logits bf16 f32; n_live,ids i32; weights bf16 f32
// Rounding  softmax f32; one round-to-nearest-even when weights is bf16
// Order     of equal logits the lower index comes first; the sum runs over slots 0..K-1
// Aliasing  outputs overlap nothing
// Bounds    rows >= n_live: logits not read, ids -1, weights 0. A NaN logit ranks below all others;
//           when it is chosen all the same, the row's weights are NaN. ids are always K distinct
//           experts
// Graph     capture-safe: no sync, allocation or host read
// Scratch   none
// Cost      bytes = n*E + 2*n*K;  flops = n*(E + 4*K)
#pragma once

#include "ops/operand.h"

namespace lr::ops {

struct RoutingScoresArgs {
    ConstView logits; // [n, E]
    ConstView n_live; // [1] i32
    View ids;         // [n, K] i32
    View weights;     // [n, K]
    Precision precision = Precision::kModel;

    template <typename Visitor> void visit(Visitor& v) {
        v.in("logits", logits);
        v.in("n_live", n_live);
        v.out("ids", ids);
        v.out("weights", weights);
    }
};

Status check(const RoutingScoresArgs& args);
Cost cost(const RoutingScoresArgs& args);

} // namespace lr::ops
