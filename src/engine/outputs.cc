// SPDX-License-Identifier: Apache-2.0
#include "engine/outputs.h"

namespace lr::engine {
namespace {

RowLogprobs read_logprobs(const graph::Outputs& outputs, std::int64_t row, std::int32_t top,
                          FunctionRef<ConstView(graph::TensorId)> tensor) {
    RowLogprobs result;
    result.rank = tensor(outputs.rank).as<std::int32_t>()[row];
    if (result.rank == 0)
        return result;
    result.token = {tensor(outputs.scored_id).as<std::int32_t>()[row],
                    tensor(outputs.logprob).as<double>()[row]};
    const auto* ids = tensor(outputs.top_id).row_as<std::int32_t>(row);
    const auto* logprobs = tensor(outputs.top_logprob).row_as<double>(row);
    for (std::int32_t i = 0; i < top && ids[i] >= 0; ++i)
        result.top.push_back({ids[i], logprobs[i]});
    return result;
}

} // namespace

PieceOutput read_outputs(const graph::Outputs& outputs, LogitRange range, OutputWish wish,
                         FunctionRef<ConstView(graph::TensorId)> tensor) {
    PieceOutput piece;
    for (std::int64_t row = range.first; row < range.first + range.count; ++row) {
        piece.tokens.push_back(tensor(outputs.tokens).as<std::int32_t>()[row]);
        piece.finite = piece.finite && tensor(outputs.sample_status).as<std::int32_t>()[row] == 0;
        if (wish.top_logprobs >= 0)
            piece.logprobs.push_back(read_logprobs(outputs, row, wish.top_logprobs, tensor));
    }
    if (wish.logits && range.count > 0) {
        const ConstView logits = tensor(outputs.logits);
        const auto* first = logits.row_as<float>(range.first);
        piece.logits.assign(first, first + range.count * logits.shape[1]);
    }
    return piece;
}

} // namespace lr::engine
