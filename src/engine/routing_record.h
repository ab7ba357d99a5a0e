// SPDX-License-Identifier: Apache-2.0
//
// engine/routing_record.h: the experts that tokens went to, kept and imposed on another run. A
// rounding may tip a token to another expert; with the routing forced, what is left of a difference
// between two runs is arithmetic.
#pragma once

#include "engine/observer.h"

#include <cstdint>
#include <span>
#include <vector>

namespace lr::engine {

// Per layer the expert ids of each token, in the order in which the tokens ran: how steps cut the
// tokens does not show. A layer without experts has none.
class RoutingRecord {
  public:
    // Appends ids [rows,K] i32.
    void append(std::int32_t layer, ConstView ids);
    std::int64_t tokens(std::int32_t layer) const;
    // The K ids of one token.
    std::span<const std::int32_t> ids(std::int32_t layer, std::int64_t token) const;
    std::int64_t per_token(std::int32_t layer) const;

  private:
    struct Layer {
        std::int64_t per_token = 0;
        std::vector<std::int32_t> ids;
    };
    const Layer* find(std::int32_t layer) const;
    std::vector<Layer> layers_;
};

// Records rank 0's routing; all ranks route alike.
class RecordRouting final : public NodeObserver {
  public:
    Status after(const Launched& launched) override;
    const RoutingRecord& record() const { return record_; }

  private:
    RoutingRecord record_;
};

// Replaces the ids of each token by the record's next, and its weights by the op's formula for them
// from this run's logits. kInvalidArgument when the record has no more tokens or another K.
class ForceRouting final : public NodeObserver {
  public:
    explicit ForceRouting(RoutingRecord record);
    Status after(const Launched& launched) override;
    // Begins again at the first token. No step may run.
    void rewind();

  private:
    RoutingRecord record_;
    std::vector<std::vector<std::int64_t>> next_; // [rank][layer]; ranks never share one
};

} // namespace lr::engine
