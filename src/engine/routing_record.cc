// SPDX-License-Identifier: Apache-2.0
#include "engine/routing_record.h"

#include "core/ranks.h"
#include "cpu/experts/experts.h"
#include "cpu/rows.h"

#include <algorithm>

namespace lr::engine {
namespace {

// The node's arguments and its live tokens; null for a node that does not route.
const ops::RoutingScoresArgs* routing(const Launched& launched) {
    return std::get_if<ops::RoutingScoresArgs>(&launched.args);
}

std::int64_t live_tokens(const ops::RoutingScoresArgs& args) {
    return cpu::live_rows(args.n_live, args.ids.rows());
}

} // namespace

const RoutingRecord::Layer* RoutingRecord::find(std::int32_t layer) const {
    const auto index = static_cast<std::size_t>(layer);
    return index < layers_.size() ? &layers_[index] : nullptr;
}

void RoutingRecord::append(std::int32_t layer, ConstView ids) {
    const auto index = static_cast<std::size_t>(layer);
    layers_.resize(std::max(layers_.size(), index + 1));
    Layer& record = layers_[index];
    record.per_token = ids.shape[1];
    for (std::int64_t token = 0; token < ids.rows(); ++token) {
        const auto* row = ids.row_as<std::int32_t>(token);
        record.ids.insert(record.ids.end(), row, row + record.per_token);
    }
}

std::int64_t RoutingRecord::per_token(std::int32_t layer) const {
    const Layer* record = find(layer);
    return record ? record->per_token : 0;
}

std::int64_t RoutingRecord::tokens(std::int32_t layer) const {
    const Layer* record = find(layer);
    return record && record->per_token > 0 ? std::ssize(record->ids) / record->per_token : 0;
}

std::span<const std::int32_t> RoutingRecord::ids(std::int32_t layer, std::int64_t token) const {
    LR_CHECK_LT(token, tokens(layer));
    const Layer& record = *find(layer);
    return std::span(record.ids)
        .subspan(static_cast<std::size_t>(token * record.per_token),
                 static_cast<std::size_t>(record.per_token));
}

Status RecordRouting::after(const Launched& launched) {
    if (const auto* args = routing(launched); args && launched.rank == 0)
        record_.append(launched.node.layer, args->ids.slice_rows(0, live_tokens(*args)));
    return {};
}

ForceRouting::ForceRouting(RoutingRecord record) : record_(std::move(record)) {
    next_.resize(kMaxRanks);
}

void ForceRouting::rewind() {
    for (auto& layers : next_)
        layers.clear();
}

Status ForceRouting::after(const Launched& launched) {
    const auto* args = routing(launched);
    if (!args)
        return {};
    const std::int32_t layer = launched.node.layer;
    auto& layers = next_[static_cast<std::size_t>(launched.rank)];
    layers.resize(std::max(layers.size(), static_cast<std::size_t>(layer) + 1), 0);
    std::int64_t& next = layers[static_cast<std::size_t>(layer)];
    const std::int64_t live = live_tokens(*args);
    if (record_.per_token(layer) != args->ids.shape[1] || next + live > record_.tokens(layer))
        return fail(Code::kInvalidArgument,
                    "{}: forced routing: expected {} more tokens of {} experts, the record has {} "
                    "of {}",
                    launched.node.id, live, args->ids.shape[1], record_.tokens(layer) - next,
                    record_.per_token(layer));
    for (std::int64_t token = 0; token < live; ++token) {
        const std::span<const std::int32_t> ids = record_.ids(layer, next++);
        if (*std::max_element(ids.begin(), ids.end()) >= args->logits.shape[1])
            return fail(Code::kInvalidArgument,
                        "{}: forced routing: expected experts below {}, the record has {}",
                        launched.node.id, args->logits.shape[1],
                        *std::max_element(ids.begin(), ids.end()));
        std::copy(ids.begin(), ids.end(), args->ids.row_as<std::int32_t>(token));
    }
    cpu::routing_weights(*args);
    return {};
}

} // namespace lr::engine
