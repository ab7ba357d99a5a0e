// SPDX-License-Identifier: Apache-2.0
#include "cli/calibrate.h"

#include "core/function_ref.h"
#include "core/log.h"
#include "core/text_file.h"
#include "cpu/rows.h"
#include "engine/engine.h"
#include "numerics/convert.h"
#include "numerics/quantize.h"
#include "text/tokenizer.h"

#include <algorithm>
#include <cmath>
#include <variant>

namespace lr::cli {
namespace {

constexpr std::int64_t kWindow = 512;

// Calls row(x, r) for each row r of x that the product multiplies, and returns its weight; null for
// other ops.
class ReadRows {
  public:
    explicit ReadRows(FunctionRef<void(ConstView, std::int64_t)> row) : row_(row) {}

    template <typename Args> const ops::Weight* operator()(const Args&) { return nullptr; }
    const ops::Weight* operator()(const ops::LinearArgs& args) {
        const std::int64_t live = cpu::live_rows(args.n_live, args.x.rows());
        for (std::int64_t r = 0; r < live; ++r)
            row_(args.x, r);
        return &args.w;
    }
    const ops::Weight* operator()(const ops::ExpertsGateUpArgs& args) {
        each_routed(args, [&](std::int64_t r) {
            row_(args.x, cpu::int_at(args.row_map, r) / args.per_token);
        });
        return &args.w;
    }
    const ops::Weight* operator()(const ops::ExpertsDownArgs& args) {
        each_routed(args, [&](std::int64_t r) { row_(args.f, r); });
        return &args.w;
    }

  private:
    template <typename Args, typename Body> static void each_routed(const Args& args, Body body) {
        for (std::int64_t e = 0; e < args.start.rows(); ++e)
            for (std::int64_t r = cpu::int_at(args.start, e); r < cpu::int_at(args.end, e); ++r)
                body(r);
    }

    FunctionRef<void(ConstView, std::int64_t)> row_;
};

Result<std::vector<std::int32_t>> read_tokens(const std::string& folder,
                                              const CalibrateOptions& options) {
    LR_TRY_ASSIGN(const text::Tokenizer tokenizer, text::Tokenizer::load(folder));
    LR_TRY_ASSIGN(const std::string text, read_text_file(options.text));
    auto ids = tokenizer.encode(text, {.allow_special = true});
    if (!ids)
        return fail(ids.error().code(), "{}: {}", options.text, ids.error().message());
    if (ids->empty())
        return fail(Code::kInvalidArgument, "{}: expected text to calibrate with, got no token",
                    options.text);
    ids->resize(std::min(ids->size(), static_cast<std::size_t>(options.tokens)));
    return std::move(*ids);
}

// From an empty state; nothing of the output is wanted.
Status run_window(engine::Engine& engine, std::vector<std::int32_t> tokens) {
    LR_TRY_ASSIGN(const engine::SequenceId sequence, engine.open_sequence());
    engine::StepInput input{.phase = graph::Phase::kPrefill};
    input.pieces.push_back({.sequence = sequence, .tokens = std::move(tokens)});
    LR_TRY_ASSIGN(const engine::Ticket ticket, engine.submit(std::move(input)));
    if (const auto output = engine.wait(ticket); !output)
        return output.error();
    return engine.close_sequence(sequence);
}

} // namespace

Status InputRangeObserver::after(const engine::Launched& launched) {
    float amax = 0;
    const auto look = [&](ConstView x, std::int64_t r) {
        row_.resize(static_cast<std::size_t>(x.shape[1]));
        numerics::decode_to_f32(x.dtype, x.row(r), x.shape[1], row_.data());
        const float largest = numerics::absolute_max(row_);
        if (largest > amax || std::isnan(largest)) // nothing exceeds a NaN
            amax = largest;
    };
    ReadRows rows(look);
    const ops::Weight* weight = std::visit(rows, launched.args);
    if (!weight)
        return {};
    const auto tensor = static_cast<std::size_t>(weight->id);
    const auto entry = static_cast<std::size_t>(launched.step.tensors[tensor].entry);
    const std::string& name = model_.entries()[entry].name;
    if (!std::isfinite(amax))
        return fail(Code::kInternal, "{}: {}: expected finite inputs, got {}",
                    launched.node.label(), name, amax);
    float& range = ranges_[name];
    range = std::max(range, amax);
    return {};
}

Result<model::InputRanges> calibrate(const model::OpenModel& opened,
                                     const CalibrateOptions& options) {
    LR_TRY_ASSIGN(const std::vector<std::int32_t> ids, read_tokens(opened.folder, options));
    InputRangeObserver observer(opened.resolved.model);
    engine::EngineOptions engine_options;
    engine_options.threads = options.threads;
    engine_options.context = std::min<std::int64_t>(kWindow, std::ssize(ids));
    engine_options.prefill_rows = kWindow;
    engine_options.observer = &observer;
    LR_TRY_ASSIGN(const auto engine, engine::Engine::load(opened, engine_options));
    Progress progress("calibrating", std::ssize(ids), "tokens");
    for (std::int64_t first = 0; first < std::ssize(ids); first += kWindow) {
        const auto end = std::min<std::int64_t>(first + kWindow, std::ssize(ids));
        LR_TRY(run_window(*engine, {ids.begin() + first, ids.begin() + end}));
        progress.advance(end - first);
    }
    return observer.ranges();
}

} // namespace lr::cli
