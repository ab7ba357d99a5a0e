// SPDX-License-Identifier: Apache-2.0
#include "graph/step_builder.h"

#include "numerics/quantize.h"

#include <algorithm>
#include <set>

namespace lr::graph {

using ops::WeightFormat;

StepBuilder::StepBuilder(const model::Model& model, const model::Shard& shard,
                         const StepShape& shape, const StepOptions& options)
    : model_(model), act_(options.precision == ops::Precision::kF32 ? DType::kF32 : DType::kBF16) {
    step_.shape = shape;
    step_.options = options;
    step_.shard = shard;
    step_.layers = model.config().layers;
    step_.inputs.fill(-1);
}

std::string StepBuilder::scoped(std::string_view name) const {
    return scope_.empty() ? std::string(name) : fmt::format("{}.{}", scope_, name);
}

void StepBuilder::open_scope(std::string name, std::int32_t layer) {
    scope_ = std::move(name);
    layer_ = layer;
    scope_first_node_ = step_.nodes.size();
}

void StepBuilder::close_scope() {
    // The numbers of a path are a topological order of it; builders emit branch by branch.
    std::stable_sort(step_.nodes.begin() + static_cast<std::ptrdiff_t>(scope_first_node_),
                     step_.nodes.end(),
                     [](const Node& a, const Node& b) { return a.number < b.number; });
    quantised_.clear();
}

TensorId StepBuilder::add_tensor(Tensor tensor) {
    LR_CHECK_LT(step_.tensors.size(), static_cast<std::size_t>(kMaxTensors));
    step_.tensors.push_back(std::move(tensor));
    return static_cast<TensorId>(step_.tensors.size()) - 1;
}

View StepBuilder::activation(std::string_view name, DType dtype, Shape shape) {
    const TensorId id = add_tensor({.name = scoped(name), .dtype = dtype, .shape = shape});
    return {symbol_address(id), dtype, shape};
}

View StepBuilder::output(std::string_view name, DType dtype, Shape shape, TensorId& id) {
    id = add_tensor(
        {.name = std::string(name), .dtype = dtype, .shape = shape, .role = Role::kOutput});
    return {symbol_address(id), dtype, shape};
}

View StepBuilder::state(StateKind kind, DType dtype, Shape shape) {
    static constexpr std::array kNames = {"conv_state", "ssm_state", "k_cache", "v_cache",
                                          "token_counts"};
    const TensorId id = add_tensor({.name = scoped(kNames[static_cast<std::size_t>(kind)]),
                                    .dtype = dtype,
                                    .shape = shape,
                                    .role = Role::kState,
                                    .layer = layer_,
                                    .state = kind});
    return {symbol_address(id), dtype, shape};
}

View StepBuilder::token_counts() {
    if (token_counts_.empty())
        token_counts_ =
            state(StateKind::kTokenCounts, DType::kU16, {shape().slots, config().vocab_size});
    return token_counts_;
}

ConstView StepBuilder::input(Input which) {
    const StepShape& s = step_.shape;
    const std::int64_t slots = s.phase == Phase::kDecode ? s.rows : s.sequences;
    const auto spec = [&]() -> std::pair<DType, Shape> {
        switch (which) {
        case Input::kTokenIds:
        case Input::kGenerated:
        case Input::kPositions:
        case Input::kRowSequence:
            return {DType::kI32, {s.rows}};
        case Input::kSlot:
            return {DType::kI32, {slots}};
        case Input::kKvSlot:
            return {DType::kI64, {s.rows}};
        case Input::kPageTable:
            return {DType::kI32, {s.sequences, s.pages_per_sequence()}};
        case Input::kLogitRows:
        case Input::kTopK:
        case Input::kCountSlot:
        case Input::kStream:
        case Input::kDrawPosition:
        case Input::kLogprobWanted:
        case Input::kLogprobTarget:
            return {DType::kI32, {s.logit_rows}};
        case Input::kBiasRange:
            return {DType::kI32, {s.logit_rows, 2}};
        case Input::kBiasId:
            return {DType::kI32, {s.biases()}};
        case Input::kBiasValue:
            return {DType::kF32, {s.biases()}};
        case Input::kTemperature:
        case Input::kTopP:
        case Input::kMinP:
        case Input::kRepetition:
        case Input::kFrequency:
        case Input::kPresence:
            return {DType::kF32, {s.logit_rows}};
        case Input::kSeed:
            return {DType::kI64, {s.logit_rows}};
        case Input::kCuSeqlens:
        case Input::kSeqChunk:
            return {DType::kI32, {s.sequences + 1}};
        case Input::kPrefixLen:
            return {DType::kI32, {s.sequences}};
        case Input::kChunkRow:
        case Input::kChunkLen:
            return {DType::kI32, {s.chunks()}};
        case Input::kLiveRows:
        case Input::kLiveLogits:
        case Input::kCount:
            break;
        }
        return {DType::kI32, {1}};
    };
    const auto [dtype, shape] = spec();
    TensorId& id = step_.inputs[static_cast<std::size_t>(which)];
    if (id < 0)
        id = add_tensor({.name = std::string(input_name(which)),
                         .dtype = dtype,
                         .shape = shape,
                         .role = Role::kInput,
                         .input = which});
    return {symbol_address(id), dtype, shape};
}

TensorId StepBuilder::weight_tensor(std::string_view name) {
    const std::string full =
        layer_ < 0 ? std::string(name) : fmt::format("layers.{}.{}", layer_, name);
    if (const auto found = weights_.find(full); found != weights_.end())
        return found->second;
    const std::int32_t entry = model_.index(full);
    LR_CHECK_GE(entry, 0);
    const model::Entry& e = model_.entries()[static_cast<std::size_t>(entry)];
    const TensorId id = add_tensor({.name = full,
                                    .dtype = e.dtype,
                                    .shape = local_shape(e, step_.shard),
                                    .role = Role::kWeight,
                                    .entry = entry});
    weights_.emplace(full, id);
    return id;
}

ConstView StepBuilder::vector(std::string_view name) {
    const TensorId id = weight_tensor(name);
    const Tensor& tensor = step_.tensors[static_cast<std::size_t>(id)];
    return {symbol_address(id), tensor.dtype, tensor.shape};
}

ops::Weight StepBuilder::weight(std::string_view name) {
    const TensorId id = weight_tensor(name);
    const Tensor& tensor = step_.tensors[static_cast<std::size_t>(id)];
    const model::Entry& entry = model_.entries()[static_cast<std::size_t>(tensor.entry)];
    return {.format = entry.format,
            .shape = tensor.shape,
            .dtype = entry.dtype,
            .id = id,
            .input_scale = entry.input_scale};
}

Node& StepBuilder::node(std::int32_t number, std::string name, ops::AnyArgs args, Lane lane) {
    Node& node = step_.nodes.emplace_back();
    node.id = fmt::format("{}.{}", scope_, number);
    node.name = std::move(name);
    node.layer = layer_;
    node.number = number;
    node.lane = lane;
    node.args = std::move(args);
    return node;
}

void StepBuilder::all_reduce(std::int32_t number, std::string name, View rows, RankGroup group) {
    node(number, std::move(name),
         ops::AllReduceArgs{.x = rows,
                            .n_live = input(Input::kLiveRows),
                            .y = rows,
                            .ranks = ranks(group),
                            .group = group})
        .alias = ranks(group) == 1;
}

bool StepBuilder::quantises(const ops::Weight& w) const {
    if (options().precision == ops::Precision::kF32 || options().a16 ||
        w.format == WeightFormat::kPlain)
        return false;
    // Without a calibrated scale an NVFP4 weight is one for plain activations.
    return w.format != WeightFormat::kNvfp4 || (options().w4a4 && w.input_scale > 0);
}

std::string StepBuilder::gemm_suffix(const ops::Weight& w) const {
    if (w.format == WeightFormat::kPlain)
        return "bf16_gemm";
    const bool fp4 = w.format == WeightFormat::kNvfp4;
    if (quantises(w))
        return fp4 ? "fp4_gemm" : "fp8_gemm";
    return fp4 ? "w4a16_gemm" : "w8a16_gemm";
}

StepBuilder::Codes StepBuilder::codes(std::string_view name, std::int64_t rows, std::int64_t width,
                                      const ops::Weight& w) {
    if (!quantises(w))
        return {activation(name, act_, {rows, width}), {}};
    const std::string scale = fmt::format("{}_scale", name);
    if (w.format == WeightFormat::kNvfp4)
        return {activation(name, DType::kE2M1, {rows, width}),
                activation(scale, DType::kE4M3, {rows, width / numerics::kNvfp4Block}),
                w.input_scale};
    const View x = activation(name, DType::kE4M3, {rows, width});
    if (w.format == WeightFormat::kFp8Block)
        return {x, activation(scale, DType::kF32,
                              {rows, (width + numerics::kFp8Group - 1) / numerics::kFp8Group})};
    if (w.input_scale > 0)
        return {x, {}, w.input_scale};
    return {x, activation(scale, DType::kF32, {rows})};
}

Operand StepBuilder::quantise(std::int32_t number, std::string_view base, ConstView x,
                              const ops::Weight& w, Lane lane) {
    if (!quantises(w))
        return {x, {}};
    const Symbol source = to_symbol(x.data);
    const QuantKey key{source.tensor, source.offset, w.format, w.input_scale};
    if (const auto found = quantised_.find(key); found != quantised_.end()) {
        for (Node& made : step_.nodes)
            if (made.id == found->second.node_id)
                made.also.push_back(number);
        return found->second.operand;
    }
    const std::string name = fmt::format("{}_codes", base);
    const Codes made = codes(name, x.shape[0], x.shape[1], w);
    const ConstView n_live = input(Input::kLiveRows);
    const bool fp4 = w.format == WeightFormat::kNvfp4;
    const bool block = w.format == WeightFormat::kFp8Block;
    ops::AnyArgs args;
    if (fp4)
        args = ops::Nvfp4QuantArgs{.x = x,
                                   .n_live = n_live,
                                   .q = made.x,
                                   .scale = made.scale,
                                   .encode_scale = 1.0f / made.decode};
    else
        args =
            ops::Fp8QuantArgs{.x = x,
                              .n_live = n_live,
                              .q = made.x,
                              .scale = made.scale,
                              .group = static_cast<std::int32_t>(block ? numerics::kFp8Group : 0),
                              .static_scale = made.scale.shape.rank() == 0 ? made.decode : 0.0f};
    const Node& quant =
        node(number, fmt::format("{}_{}", base, fp4 ? "nvfp4_quant" : "fp8_quant"), args, lane);
    const Operand operand{made.x, made.scale, made.decode};
    quantised_.emplace(key, QuantEntry{operand, quant.id});
    return operand;
}

View StepBuilder::linear(std::int32_t number, std::string_view base, const Operand& x,
                         const ops::Weight& w, std::string_view y_name, Lane lane) {
    const View y = activation(y_name, act_, {x.x.shape[0], w.rows()});
    node(number, fmt::format("{}_{}", base, gemm_suffix(w)),
         ops::LinearArgs{.x = x.x,
                         .x_scale = x.scale,
                         .n_live = input(Input::kLiveRows),
                         .w = w,
                         .y = y,
                         .x_global = x.global,
                         .precision = options().precision},
         lane);
    return y;
}

namespace {

// Lists what an op touches, in visit order.
struct UseVisitor {
    std::vector<Use>& uses;

    void add(const char* slot, const std::byte* address, Access access) {
        if (const Symbol symbol = to_symbol(address); symbol.tensor >= 0)
            uses.push_back({slot, symbol.tensor, access});
    }
    void in(const char* slot, ConstView view) { add(slot, view.data, Access::kRead); }
    void weight(const char* slot, const ops::Weight& w) {
        if (w.id >= 0)
            uses.push_back({slot, w.id, Access::kRead});
    }
    void state(const char* slot, View view) { add(slot, view.data, Access::kUpdate); }
    void out(const char* slot, View view) { add(slot, view.data, Access::kWrite); }
};

} // namespace

Status StepBuilder::finish_node(Node& node) {
    UseVisitor visitor{node.uses};
    std::visit([&](auto& args) { args.visit(visitor); }, node.args);
    Status status = ops::check(node.args);
    if (!status.ok())
        return status.with_context(node.label());
    if (!node.alias)
        node.cost = ops::cost(node.args);
    return {};
}

// Readers depend on the last writer; a writer also waits for the readers of what it overwrites.
void StepBuilder::add_edges() {
    struct History {
        std::int32_t writer = -1;
        std::vector<std::int32_t> readers;
    };
    std::vector<History> history(step_.tensors.size());
    std::set<std::tuple<std::int32_t, std::int32_t, TensorId>> seen;
    const auto connect = [&](std::int32_t from, std::int32_t to, TensorId tensor) {
        if (from >= 0 && from != to && seen.emplace(from, to, tensor).second)
            step_.edges.push_back({from, to, tensor});
    };
    for (std::size_t n = 0; n < step_.nodes.size(); ++n) {
        const auto id = static_cast<std::int32_t>(n);
        for (const Use& use : step_.nodes[n].uses) {
            History& h = history[static_cast<std::size_t>(use.tensor)];
            connect(h.writer, id, use.tensor);
            if (use.access == Access::kRead) {
                h.readers.push_back(id);
                continue;
            }
            for (std::int32_t reader : h.readers)
                connect(reader, id, use.tensor);
            h = {id, {}};
        }
    }
    std::sort(step_.edges.begin(), step_.edges.end(), [](const Edge& a, const Edge& b) {
        return std::tie(a.from, a.to, a.tensor) < std::tie(b.from, b.to, b.tensor);
    });
}

Result<Step> StepBuilder::finish() {
    for (Node& node : step_.nodes)
        LR_TRY(finish_node(node));
    add_edges();
    return std::move(step_);
}

} // namespace lr::graph
