// SPDX-License-Identifier: Apache-2.0
#include "verify/session.h"

#include "core/check.h"

#include <algorithm>

namespace lr::verify {

using graph::Phase;

Session::Session(const Workload& workload) : workload_(workload) {
    LR_CHECK(!workload.requests.empty());
    for (const Request& request : workload.requests) {
        LR_CHECK_GE(request.prompt.size(), 2u);
        context_ = std::max(context_, std::ssize(request.prompt) + workload.decode_steps);
    }
}

std::int64_t Session::first_half(std::size_t request) const {
    return (std::ssize(workload_.requests[request].prompt) + 1) / 2;
}

graph::StepShape Session::shape(std::int64_t step) const {
    const std::int64_t n = std::ssize(workload_.requests);
    graph::StepShape shape{.phase = step < 2 ? Phase::kPrefill : Phase::kDecode,
                           .rows = n + 1,
                           .sequences = n + 1,
                           .logit_rows = n + 1,
                           .context = context_,
                           .slots = n + 1,
                           .kv_pages = n * pages_each() + 1};
    if (shape.phase == Phase::kDecode)
        return shape;
    std::int64_t rows = 0;
    for (std::size_t r = 0; r < workload_.requests.size(); ++r)
        rows +=
            step == 0 ? first_half(r) : std::ssize(workload_.requests[r].prompt) - first_half(r);
    if (workload_.all_logits)
        shape.logit_rows = rows + 1;
    shape.rows =
        (rows + ops::kGdnChunk) / ops::kGdnChunk * ops::kGdnChunk; // one row spare at least
    return shape;
}

StepWork Session::work(std::int64_t step) const {
    const bool prefill = step < 2;
    StepWork work{
        .name = fmt::format("{} {}", prefill ? "prefill" : "decode", prefill ? step + 1 : step - 1),
        .shape = shape(step),
        .pieces = {},
        .positions = {}};
    for (std::size_t r = 0; r < workload_.requests.size(); ++r) {
        const Request& request = workload_.requests[r];
        const std::int64_t half = first_half(r), length = std::ssize(request.prompt);
        const std::int64_t first = step == 0 ? 0 : half, end = step == 0 ? half : length;
        engine::Piece& piece = work.pieces.emplace_back();
        piece.sampling = request.sampling;
        piece.logprobs = request.logprobs;
        piece.logits =
            prefill && workload_.all_logits ? engine::Logits::kAll : engine::Logits::kLast;
        if (prefill)
            piece.tokens.assign(request.prompt.begin() + first, request.prompt.begin() + end);
        else
            piece.tokens = {last_[r]};
        work.positions.push_back(prefill ? first : length + step - 2);
    }
    return work;
}

std::vector<engine::LogitRange> Session::fill(const graph::Step& step, const StepWork& work,
                                              std::byte* block) const {
    std::vector<std::vector<std::int32_t>> pages(work.pieces.size());
    std::vector<engine::BatchPiece> batch;
    for (std::size_t r = 0; r < work.pieces.size(); ++r) {
        for (std::int64_t p = 0; p < pages_each();
             ++p) // backwards: no page lies where its number says
            pages[r].push_back(static_cast<std::int32_t>(
                (static_cast<std::int64_t>(r) + 1) * pages_each() - 1 - p));
        batch.push_back({.piece = work.pieces[r],
                         .position = work.positions[r],
                         .slot = static_cast<std::int32_t>(r),
                         .pages = pages[r]});
    }
    return engine::InputBlock(step).fill(block, batch);
}

} // namespace lr::verify
