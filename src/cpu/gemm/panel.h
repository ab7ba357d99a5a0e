// SPDX-License-Identifier: Apache-2.0
//
// cpu/gemm/panel.h: rows of activations against a panel of weight rows: the loop that linear,
// experts_gate_up and experts_down share.
//
// A result is the dot of two rows times their factors (ops/operand.h); panel width, row blocks and
// threads change nothing in it. A few rows read the weights as they lie in memory, which then pass
// by once; many read a panel that was decoded for all of them.
#pragma once

#include "core/function_ref.h"
#include "core/thread_pool.h"
#include "cpu/gemm/operand_rows.h"

#include <cstdint>

namespace lr::cpu {

// A run of weight rows [first, first + count).
struct RowRun {
    std::int64_t first = 0;
    std::int64_t count = 0;
};

inline constexpr std::int64_t kMaxPanel = 256;
inline constexpr std::int64_t kPanelStep = 8;

// Weight rows that a panel of a K-wide weight should hold, a multiple of kPanelStep: so that the
// decoded panel stays in a core's second-level cache.
std::int64_t panel_width(std::int64_t k);
// The same for `rows` rows of x and all `n` of the weight: more where nothing is decoded, since
// memory is read fastest in long streams, and fewer where threads would have no part.
std::int64_t panel_width(std::int64_t k, std::int64_t rows, std::int64_t n, int threads);

// Packs all `rows` rows of x (from 0 on) for products with w, in memory of this thread, where many
// panels would do the same.
void share_packed_rows(ActivationRows& x, std::int64_t rows, const WeightRows& w, ThreadPool& pool);

// y[i, j] of rows [first, first + count) of x and a panel of weight rows: run a, then run b (may be
// empty). `values` is [count, a.count + b.count] f32, unrounded, valid during the call.
using PanelSink = FunctionRef<void(std::int64_t first, std::int64_t count, const float* values)>;
void multiply_panel(const ActivationRows& x, RowRun rows, const WeightRows& w, RowRun a, RowRun b,
                    PanelSink sink);

} // namespace lr::cpu
