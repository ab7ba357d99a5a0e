// SPDX-License-Identifier: Apache-2.0
#include "engine/outputs.h"

namespace lr::engine {
namespace {

using Tensors = FunctionRef<Result<ConstView>(graph::TensorId)>;

Result<RowLogprobs> read_logprobs(const graph::Outputs& outputs, std::int64_t row, std::int32_t top,
                                  Tensors tensor) {
    RowLogprobs result;
    LR_TRY_ASSIGN(const ConstView rank, tensor(outputs.rank));
    result.rank = rank.as<std::int32_t>()[row];
    if (result.rank == 0)
        return result;
    LR_TRY_ASSIGN(const ConstView scored, tensor(outputs.scored_id));
    LR_TRY_ASSIGN(const ConstView logprob, tensor(outputs.logprob));
    result.token = {scored.as<std::int32_t>()[row], logprob.as<double>()[row]};
    LR_TRY_ASSIGN(const ConstView top_id, tensor(outputs.top_id));
    LR_TRY_ASSIGN(const ConstView top_logprob, tensor(outputs.top_logprob));
    const auto* ids = top_id.row_as<std::int32_t>(row);
    const auto* logprobs = top_logprob.row_as<double>(row);
    for (std::int32_t i = 0; i < top && ids[i] >= 0; ++i)
        result.top.push_back({ids[i], logprobs[i]});
    return result;
}

} // namespace

Result<PieceOutput> read_outputs(const graph::Outputs& outputs, LogitRange range, OutputWish wish,
                                 Tensors tensor) {
    PieceOutput piece;
    LR_TRY_ASSIGN(const ConstView tokens, tensor(outputs.tokens));
    LR_TRY_ASSIGN(const ConstView status, tensor(outputs.sample_status));
    for (std::int64_t row = range.first; row < range.first + range.count; ++row) {
        piece.tokens.push_back(tokens.as<std::int32_t>()[row]);
        piece.finite = piece.finite && status.as<std::int32_t>()[row] == 0;
        if (wish.top_logprobs >= 0) {
            LR_TRY_ASSIGN(RowLogprobs logprobs,
                          read_logprobs(outputs, row, wish.top_logprobs, tensor));
            piece.logprobs.push_back(std::move(logprobs));
        }
    }
    if (wish.logits && range.count > 0) {
        LR_TRY_ASSIGN(const ConstView logits, tensor(outputs.logits));
        const auto* first = logits.row_as<float>(range.first);
        piece.logits.assign(first, first + range.count * logits.shape[1]);
    }
    return piece;
}

} // namespace lr::engine
