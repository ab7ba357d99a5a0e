// SPDX-License-Identifier: Apache-2.0
//
// engine/outputs.h: from the tensors that a step leaves to what a piece is told.
#pragma once

#include "core/function_ref.h"
#include "engine/batch.h"

namespace lr::engine {

// What is copied for one piece.
struct OutputWish {
    bool logits = false;
    std::int32_t top_logprobs = -1; // LogprobWish::top
};

// The results of the logit rows in `range`. `tensor` gives the host memory of a tensor of the step.
Result<PieceOutput> read_outputs(const graph::Outputs& outputs, LogitRange range, OutputWish wish,
                                 FunctionRef<Result<ConstView>(graph::TensorId)> tensor);

} // namespace lr::engine
