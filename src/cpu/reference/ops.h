// SPDX-License-Identifier: Apache-2.0
//
// cpu/reference/ops.h: one function an op (cpu/reference/reference.h).
#pragma once

#include "core/thread_pool.h"
#include "cpu/reference/tensors.h"
#include "ops/any_op.h"

namespace lr::cpu::reference {

#define LR_REFERENCE_OP(Args, function)                                                            \
    void function(const ops::Args& args, Errors& errors, ThreadPool& pool);
#include "cpu/reference/op_list.inc"
#undef LR_REFERENCE_OP

// Live rows of a batch of n (ops/op.h).
std::int64_t live_rows(ConstView n_live, std::int64_t n);

inline std::int64_t int_at(ConstView view, std::int64_t index) {
    return view.as<std::int32_t>()[index];
}

} // namespace lr::cpu::reference
