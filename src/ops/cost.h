// SPDX-License-Identifier: Apache-2.0
//
// ops/cost.h: the plain case of a cost: every tensor that an op's Args list is moved once.
//
// Shapes are all it reads, so symbolic views will do. An absent optional counts nothing. Ops that
// touch only a part of a tensor (a table, a cache) write their own formula.
#pragma once

#include "ops/op.h"
#include "ops/weight.h"

#include <cstdint>

namespace lr::ops {

// Bytes of a view's elements, 0 for an absent optional.
inline std::int64_t tensor_bytes(ConstView view) {
    return view.shape.rank() == 0 ? 0 : view.bytes();
}

struct CostVisitor {
    Cost cost;

    void in(const char*, ConstView view) { cost.read_bytes += tensor_bytes(view); }
    void weight(const char*, const Weight& w) {
        cost.weight_bytes += weight_bytes(w);
        cost.read_bytes += weight_bytes(w);
    }
    void state(const char*, ConstView view) {
        cost.state_bytes += tensor_bytes(view);
        cost.read_bytes += tensor_bytes(view);
        cost.write_bytes += tensor_bytes(view);
    }
    void out(const char*, ConstView view) { cost.write_bytes += tensor_bytes(view); }
};

// Inputs and weights read once, outputs written once, states both.
template <typename Args> Cost whole_tensor_cost(Args args, std::int64_t flops) {
    CostVisitor visitor;
    args.visit(visitor);
    visitor.cost.flops = flops;
    return visitor.cost;
}

} // namespace lr::ops
