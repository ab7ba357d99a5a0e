// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/op_case.h"

#include "engine/binding.h"
#include "experts/endpoints.h"
#include "numerics/bf16.h"
#include "numerics/counter_rng.h"
#include "numerics/e4m3.h"
#include "numerics/quantize.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace lr::cli {
namespace {

// Beyond this a tensor repeats itself: drawing every number would take longer than measuring.
constexpr std::int64_t kPattern = std::int64_t{1} << 16; // bytes
constexpr float kGlobal = 0.01f;

float draw(const numerics::CounterRng& rng, std::int64_t i, bool scale) {
    const auto index = static_cast<std::uint64_t>(i);
    return scale ? rng.uniform(index, 0x1p-8f, 0x1p-6f)
                 : rng.normal(index, numerics::normal_scale(0.1), 0.0f);
}

// A code as a quantiser makes it (the largest of a few thousand normal values is 448: hardly one is
// subnormal, which some processors decode slowly), or a positive scale of 0.5 .. 4.
std::uint8_t draw_code(const numerics::CounterRng& rng, std::int64_t i, bool scale) {
    const auto index = static_cast<std::uint64_t>(i);
    if (scale)
        return static_cast<std::uint8_t>(0x30 + (rng.bits(index) >> 32) % 24);
    return numerics::encode_e4m3(rng.normal(index, numerics::normal_scale(448.0 / 3.5), 0.0f));
}

void fill_pattern(View view, std::int64_t bytes, const numerics::CounterRng& rng, bool scale) {
    if (view.dtype == DType::kF32)
        for (std::int64_t i = 0; i < bytes / 4; ++i)
            view.as<float>()[i] = draw(rng, i, scale);
    else if (view.dtype == DType::kBF16)
        for (std::int64_t i = 0; i < bytes / 2; ++i)
            view.as<std::uint16_t>()[i] = numerics::encode_bf16(draw(rng, i, scale));
    else
        for (std::int64_t i = 0; i < bytes; ++i)
            view.as<std::uint8_t>()[i] =
                view.dtype == DType::kE4M3
                    ? draw_code(rng, i, scale)
                    : static_cast<std::uint8_t>(rng.bits(static_cast<std::uint64_t>(i)) >> 32);
}

ops::ExpertLoad load_of(const OpSpec& spec) {
    return {.tokens = spec.rows,
            .per_token = static_cast<std::int32_t>(spec.per_token),
            .experts = static_cast<std::int32_t>(spec.experts)};
}

bool experts_op(const std::string& op) {
    return op == "experts_gate_up" || op == "experts_down";
}

} // namespace

const std::vector<std::string>& op_names() {
    static const std::vector<std::string> names = {"linear", "experts_gate_up", "experts_down",
                                                   "attention", "recurrent_update"};
    return names;
}

bool has_weights(const std::string& op) {
    return op == "linear" || experts_op(op);
}

Result<std::unique_ptr<OpCase>> OpCase::make(const OpSpec& spec, std::uint64_t seed,
                                             std::int64_t most_bytes) {
    std::unique_ptr<OpCase> made(new OpCase(spec, seed, most_bytes));
    LR_TRY(made->build());
    LR_TRY(ops::check(made->args_));
    return made;
}

Status OpCase::build() {
    if (experts_op(spec_.op))
        return build_experts();
    if (spec_.op == "attention")
        return build_attention();
    if (spec_.op == "recurrent_update")
        return build_recurrent();
    return build_linear();
}

Result<View> OpCase::tensor(DType dtype, Shape shape, Fill fill) {
    const std::int64_t bytes = dtype_bytes(dtype, shape.count());
    bytes_ += bytes;
    if (bytes_ > most_bytes_)
        return fail(Code::kResourceExhausted,
                    "{}: expected at most {}, the free memory that may be used; got more", spec_.op,
                    format_bytes(most_bytes_));
    LR_TRY_ASSIGN(Buffer buffer, Buffer::allocate(bytes, spec_.op));
    const View view(buffer.data(), dtype, shape);
    const std::int64_t drawn = fill == Fill::kZero ? 0 : std::min(bytes, kPattern);
    const numerics::CounterRng rng(spec_.op, (seed_ << 32) + memory_.size());
    fill_pattern(view, drawn, rng, fill == Fill::kScales);
    for (std::int64_t done = drawn; drawn > 0 && done < bytes;) {
        const std::int64_t more = std::min(drawn, bytes - done);
        std::copy_n(view.data, more, view.data + done);
        done += more;
    }
    memory_.push_back(std::move(buffer));
    return view;
}

// first, first + step, first + 2 * step, ...
Result<View> OpCase::integers(Shape shape, std::int64_t first, std::int64_t step) {
    LR_TRY_ASSIGN(const View view, tensor(DType::kI32, shape, Fill::kZero));
    for (std::int64_t i = 0; i < shape.count(); ++i)
        view.as<std::int32_t>()[i] = static_cast<std::int32_t>(first + i * step);
    return view;
}

// One part, or one for each expert.
Result<ops::Weight> OpCase::weight(Shape shape) {
    ops::Weight w{.format = spec_.weights,
                  .shape = shape,
                  .dtype = numerics::weight_data_dtype(spec_.weights, DType::kBF16)};
    const std::int64_t count = shape.rank() == 3 ? shape[0] : 1;
    if (w.format == ops::WeightFormat::kNvfp4 && w.columns() % numerics::kNvfp4Block != 0)
        return fail(Code::kInvalidArgument, "{}: nvfp4: expected -K a multiple of {}, got {}",
                    spec_.op, numerics::kNvfp4Block, w.columns());
    const Shape scale = numerics::weight_scale_shape(w.format, w.rows(), w.columns());
    for (std::int64_t i = 0; i < count; ++i) {
        ops::WeightPart part;
        LR_TRY_ASSIGN(part.data, tensor(w.dtype, {w.rows(), w.columns()}, Fill::kValues));
        if (scale.rank() > 0) {
            const DType dtype = numerics::weight_scale_dtype(w.format);
            LR_TRY_ASSIGN(part.scale, tensor(dtype, scale, Fill::kScales));
        }
        if (w.format == ops::WeightFormat::kFp8Tensor || w.format == ops::WeightFormat::kNvfp4)
            part.global = kGlobal;
        parts_.push_back(part);
    }
    w.parts = parts_;
    return w;
}

// x [rows, K] and its scale, in the format of the activations.
Status OpCase::activations(ConstView& x, ConstView& scale, float& global, std::int64_t rows) {
    using Format = ops::ActivationFormat;
    const Format format = spec_.activations;
    const std::int64_t k = spec_.inputs;
    if (format == Format::kNvfp4 && k % numerics::kNvfp4Block != 0)
        return fail(Code::kInvalidArgument, "{}: nvfp4: expected -K a multiple of {}, got {}",
                    spec_.op, numerics::kNvfp4Block, k);
    const DType dtype = format == Format::kPlain   ? DType::kBF16
                        : format == Format::kNvfp4 ? DType::kE2M1
                                                   : DType::kE4M3;
    LR_TRY_ASSIGN(x, tensor(dtype, {rows, k}, Fill::kValues));
    Shape scales;
    if (format == Format::kFp8Token)
        scales = {rows};
    else if (format == Format::kFp8Group)
        scales = {rows, (k + numerics::kFp8Group - 1) / numerics::kFp8Group};
    else if (format == Format::kNvfp4)
        scales = {rows, k / numerics::kNvfp4Block};
    if (scales.rank() > 0) {
        const DType kind = format == Format::kNvfp4 ? DType::kE4M3 : DType::kF32;
        LR_TRY_ASSIGN(scale, tensor(kind, scales, Fill::kScales));
    }
    if (format == Format::kNvfp4 || format == Format::kFp8Static)
        global = kGlobal;
    return {};
}

Status OpCase::build_linear() {
    ops::LinearArgs args;
    LR_TRY(activations(args.x, args.x_scale, args.x_global, spec_.rows));
    LR_TRY_ASSIGN(args.n_live, integers({1}, spec_.rows, 0));
    LR_TRY_ASSIGN(args.w, weight({spec_.outputs, spec_.inputs}));
    LR_TRY_ASSIGN(args.y, tensor(DType::kBF16, {spec_.rows, spec_.outputs}, Fill::kZero));
    args_ = args;
    return {};
}

Status OpCase::build_experts() {
    if (spec_.per_token > spec_.experts)
        return fail(Code::kInvalidArgument, "{}: expected --top-k of at most {} experts, got {}",
                    spec_.op, spec_.experts, spec_.per_token);
    LR_TRY(build_routing());
    return spec_.op == "experts_down" ? build_down() : build_gate_up();
}

Status OpCase::build_routing() {
    const std::int64_t pairs = spec_.rows * spec_.per_token;
    const std::int64_t capacity =
        experts::rows_capacity(spec_.rows, spec_.per_token, spec_.experts, 1);
    ops::RoutingIndicesArgs& routing = routing_.emplace();
    LR_TRY_ASSIGN(chosen_, integers({spec_.rows, spec_.per_token}, 0, 0));
    routing.ids = chosen_;
    LR_TRY_ASSIGN(routing.n_live, integers({1}, spec_.rows, 0));
    LR_TRY_ASSIGN(routing.counts, integers({spec_.experts}, 0, 0));
    LR_TRY_ASSIGN(routing.start, integers({spec_.experts}, 0, 0));
    LR_TRY_ASSIGN(routing.end, integers({spec_.experts}, 0, 0));
    LR_TRY_ASSIGN(routing.row_map, integers({capacity}, -1, 0));
    LR_TRY_ASSIGN(routing.row_of, integers({pairs}, -1, 0));
    return ops::check(routing);
}

Status OpCase::build_gate_up() {
    if (spec_.outputs % 2 != 0)
        return fail(Code::kInvalidArgument,
                    "experts_gate_up: expected an even -N (gate and up), got {}", spec_.outputs);
    ops::ExpertsGateUpArgs args;
    LR_TRY(activations(args.x, args.x_scale, args.x_global, spec_.rows));
    args.start = routing_->start;
    args.end = routing_->end;
    args.row_map = routing_->row_map;
    LR_TRY_ASSIGN(args.w, weight({spec_.experts, spec_.outputs, spec_.inputs}));
    LR_TRY_ASSIGN(args.f,
                  tensor(DType::kBF16, {args.row_map.rows(), spec_.outputs / 2}, Fill::kZero));
    args.per_token = static_cast<std::int32_t>(spec_.per_token);
    args.load = load_of(spec_);
    args_ = args;
    return {};
}

Status OpCase::build_down() {
    ops::ExpertsDownArgs args;
    const std::int64_t rows = routing_->row_map.rows();
    LR_TRY(activations(args.f, args.f_scale, args.f_global, rows));
    args.start = routing_->start;
    args.end = routing_->end;
    LR_TRY_ASSIGN(args.w, weight({spec_.experts, spec_.outputs, spec_.inputs}));
    LR_TRY_ASSIGN(args.z, tensor(DType::kBF16, {rows, spec_.outputs}, Fill::kZero));
    args.load = load_of(spec_);
    args_ = args;
    return {};
}

// A row is the last token of a sequence of its own.
Status OpCase::build_attention() {
    const std::int64_t n = spec_.rows;
    const std::int64_t pages = spec_.context / ops::kKvPage;
    const Shape cache = {n * pages, ops::kKvPage, spec_.kv_heads, spec_.head_dim};
    ops::AttentionArgs args;
    LR_TRY_ASSIGN(args.q, tensor(DType::kBF16, {n, spec_.q_heads, spec_.head_dim}, Fill::kValues));
    LR_TRY_ASSIGN(args.k_cache, tensor(DType::kBF16, cache, Fill::kValues));
    LR_TRY_ASSIGN(args.v_cache, tensor(DType::kBF16, cache, Fill::kValues));
    LR_TRY_ASSIGN(args.page_table, integers({n, pages}, 0, 1));
    LR_TRY_ASSIGN(args.row_seq, integers({n}, 0, 1));
    LR_TRY_ASSIGN(args.positions, integers({n}, spec_.context - 1, 0));
    LR_TRY_ASSIGN(args.n_live, integers({1}, n, 0));
    LR_TRY_ASSIGN(args.o, tensor(DType::kBF16, {n, spec_.q_heads * spec_.head_dim}, Fill::kZero));
    args.scale = 1.0f / std::sqrt(static_cast<float>(spec_.head_dim));
    args_ = args;
    return {};
}

Status OpCase::build_recurrent() {
    const std::int64_t n = spec_.rows, hk = spec_.k_heads, hv = spec_.v_heads;
    const Shape state = {n, hv, spec_.v_dim, spec_.k_dim};
    ops::RecurrentUpdateArgs args;
    LR_TRY_ASSIGN(args.q, tensor(DType::kBF16, {n, hk, spec_.k_dim}, Fill::kValues));
    LR_TRY_ASSIGN(args.k, tensor(DType::kBF16, {n, hk, spec_.k_dim}, Fill::kValues));
    LR_TRY_ASSIGN(args.v, tensor(DType::kBF16, {n, hv, spec_.v_dim}, Fill::kValues));
    LR_TRY_ASSIGN(args.b, tensor(DType::kBF16, {n, hv}, Fill::kValues));
    LR_TRY_ASSIGN(args.a, tensor(DType::kBF16, {n, hv}, Fill::kValues));
    LR_TRY_ASSIGN(args.a_log, tensor(DType::kF32, {hv}, Fill::kValues));
    LR_TRY_ASSIGN(args.dt_bias, tensor(DType::kF32, {hv}, Fill::kValues));
    LR_TRY_ASSIGN(args.slot, integers({n}, 0, 1));
    LR_TRY_ASSIGN(args.n_live, integers({1}, n, 0));
    LR_TRY_ASSIGN(args.ssm_state, tensor(DType::kF32, state, Fill::kValues));
    LR_TRY_ASSIGN(args.o, tensor(DType::kBF16, {n, hv, spec_.v_dim}, Fill::kZero));
    args_ = args;
    return {};
}

void OpCase::reroute(std::uint64_t round, ThreadPool& pool) {
    if (!routing_)
        return;
    std::vector<std::int32_t> order(static_cast<std::size_t>(spec_.experts));
    for (std::int64_t row = 0; row < spec_.rows; ++row) {
        std::iota(order.begin(), order.end(), 0);
        for (std::int64_t k = 0; k < spec_.per_token; ++k) {
            const std::uint64_t bits =
                numerics::counter_bits(seed_, round, static_cast<std::uint64_t>(row * 4096 + k));
            const auto left = static_cast<std::uint64_t>(spec_.experts - k);
            const auto drawn = static_cast<std::size_t>(k) + numerics::below(bits, left);
            std::swap(order[static_cast<std::size_t>(k)], order[drawn]);
        }
        std::copy_n(order.begin(), spec_.per_token, chosen_.row_as<std::int32_t>(row));
    }
    engine::run_on_cpu(*routing_, pool);
}

} // namespace lr::cli
