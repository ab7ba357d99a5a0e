// SPDX-License-Identifier: Apache-2.0
//
// engine/engine.h: load a model, submit steps, poll their results.
//
// The engine runs steps in the order of their submission, on a thread of its own, while the caller
// prepares the next: the host runs one step behind. A prefill step appends tokens to sequences; a
// decode step appends one token to each, by default the one that was drawn last, which need never
// leave the device. The two are never mixed in one step.
//
// A sequence owns a GDN slot and KV pages. A row's result depends on its own sequence alone: not on
// the other rows of the batch, their order, padding or the bucket the step ran in.
//
// With tp * ep > 1 several ranks, threads of this process, run each step together. A sequence has
// the same slot and pages on all of them, and outputs are rank 0's.
//
// Any thread may call any function; a sequence is used by one caller at a time. What a caller can
// get wrong comes back as a Status, and leaves sequences as they were.
#pragma once

#include "core/status.h"
#include "engine/observer.h"
#include "engine/piece.h"
#include "engine/place.h"
#include "graph/step.h"
#include "model/config.h"
#include "ops/op.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lr::model {
struct OpenModel;
}

namespace lr::engine {

struct EngineOptions {
    Place place = {}; // where steps run
    int threads = 0;  // <= 0: one for each usable processor
    ops::Precision precision = ops::Precision::kModel;
    ops::Numerics numerics = ops::Numerics::kHf;
    bool w4a4 = false, a16 = false;   // quantisation of activations: graph::StepOptions
    std::int64_t context = 4096;      // tokens a sequence may reach
    std::int64_t sequences = 1;       // open at the same time
    std::int64_t kv_tokens = 0;       // of all sequences together; 0: context * sequences
    std::int64_t prefill_rows = 512;  // most tokens in one prefill step; a multiple of 64
    std::int32_t vocab_limit = 0;     // ids at or beyond are never drawn (padding rows); 0: all are
    std::int32_t tp = 1, ep = 1;      // ranks: tp divide heads and widths, ep the experts
    NodeObserver* observer = nullptr; // optional; outlives the engine
};

// Bytes and threads are those of all ranks together.
struct LoadReport {
    double seconds = 0;
    double scale_seconds = 0; // of these, to check the scales of quantised weights
    std::int64_t scale_bytes = 0;
    std::int64_t weight_bytes = 0;
    std::int64_t state_bytes = 0; // slots and pages
    std::int64_t slots = 0, kv_pages = 0;
    int threads = 0, ranks = 0;
    std::string device; // "CPU avx2, 2 threads", "cuda:0 NVIDIA H200"
};

struct StepInput {
    graph::Phase phase = graph::Phase::kPrefill;
    std::vector<Piece> pieces = {};
    bool copy_logits = false; // hand the logits to the host
};

struct StepOutput {
    std::vector<PieceOutput> pieces; // in the order of the input's
    double seconds = 0;              // the step's run time
};

struct Ticket {
    std::uint64_t number = 0;
};

class Engine {
  public:
    // Binds weights, allocates states; no step runs yet. `opened` must outlive the engine.
    static Result<std::unique_ptr<Engine>> load(const model::OpenModel& opened,
                                                const EngineOptions& options);
    ~Engine();

    const model::Config& config() const;
    const EngineOptions& options() const;
    const LoadReport& report() const;

    Result<SequenceId> open_sequence();
    // A second sequence that stands where this one does after the steps submitted so far: slot,
    // pages and counts are copied in turn with the steps, nothing is shared. Its last token is the
    // same; the choices of a step are told apart by giving each its own as the next token.
    Result<SequenceId> fork_sequence(SequenceId id);
    Status close_sequence(SequenceId id);
    // Tokens in the sequence's state, submitted ones included.
    Result<std::int64_t> length(SequenceId id) const;

    Result<Ticket> submit(StepInput input);
    // The result, once; nothing while the step has not ended. kNotFound for a ticket that was never
    // given or already taken.
    Result<std::optional<StepOutput>> poll(Ticket ticket);
    Result<StepOutput> wait(Ticket ticket);

    // The bytes of one state of a sequence as they are now, waiting for submitted steps: for tests
    // and snapshots, all ranks' parts put together. kSsm, kConv: the slot; kKeys, kValues: the
    // sequence's tokens, [length, Hkv, dh]; kTokenCounts: the slot, layer -1.
    Result<std::vector<std::byte>> read_state(SequenceId id, std::int32_t layer,
                                              graph::StateKind kind);

  private:
    class Impl;
    explicit Engine(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

} // namespace lr::engine
