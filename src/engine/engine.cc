// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"

#include "core/clock.h"
#include "engine/outputs.h"
#include "engine/rank_group.h"
#include "engine/sequences.h"
#include "model/open.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

namespace lr::engine {
namespace {

std::int64_t bucket(std::int64_t value, std::int64_t smallest) {
    std::int64_t size = smallest;
    while (size < value)
        size *= 2;
    return size;
}

// A fork on its way.
struct StateCopy {
    std::int32_t from_slot = -1, to_slot = -1;
    std::vector<std::int32_t> from_pages, to_pages;
    SequenceId to;
};

// What the worker keeps of a piece.
struct JobPiece {
    SequenceId sequence;
    std::int32_t slot = -1;
    LogitRange range;
    bool take_last = false;   // decode: its token is the sequence's last
    std::int64_t choices = 1; // rows at the end of the range
    std::int32_t top_logprobs = -1;
};

// A step on its way, or a fork: everything the worker needs, nothing it must look up by name.
struct Job {
    std::uint64_t ticket = 0;
    std::optional<StateCopy> copy; // then there is no step
    RankedStep step;
    std::vector<std::byte> inputs;
    std::vector<JobPiece> pieces;
    std::vector<std::int32_t> zero_slots; // first use of a slot
    bool copy_logits = false;
};

// What the worker knows of a slot's sequence. Slots change hands in the order of the jobs, so this
// is right when a sequence has been closed, or its number given to another, meanwhile.
struct SlotTail {
    std::int32_t last_token = 0; // drawn last; -1: its logits were not finite
    bool failed = false;
};

} // namespace

class Engine::Impl {
  public:
    Impl(const model::OpenModel& opened, const EngineOptions& options,
         std::unique_ptr<RankGroup> group)
        : opened(opened), options(options), ranks(std::move(group)) {}

    static graph::StepOptions step_options(const EngineOptions& options) {
        return {.precision = options.precision,
                .numerics = options.numerics,
                .w4a4 = options.w4a4,
                .a16 = options.a16,
                .vocab_limit = options.vocab_limit};
    }

    graph::StepShape shape(graph::Phase phase, std::int64_t rows, std::int64_t sequences,
                           std::int64_t logit_rows) const {
        const std::int64_t pages = (kv_tokens() + ops::kKvPage - 1) / ops::kKvPage;
        return {.phase = phase,
                .rows = rows,
                .sequences = sequences,
                .logit_rows = logit_rows,
                .context = options.context,
                .slots = options.sequences,
                .kv_pages = std::max<std::int64_t>(pages, options.sequences)};
    }

    std::int64_t kv_tokens() const {
        if (options.kv_tokens > 0)
            return options.kv_tokens;
        const std::int64_t pages = (options.context + ops::kKvPage - 1) / ops::kKvPage;
        return pages * ops::kKvPage * options.sequences;
    }

    Status allocate_states() {
        LR_TRY_ASSIGN(const RankedStep smallest,
                      ranks->prepare(shape(graph::Phase::kDecode, 1, 1, 1)));
        LR_TRY(ranks->allocate_states(smallest));
        sequences.emplace(ranks->states(), options.context);
        tails.resize(static_cast<std::size_t>(options.sequences));
        return {};
    }

    void start() {
        worker = std::thread([this] { work(); });
    }

    ~Impl() {
        {
            const std::lock_guard lock(mutex);
            stopping = true;
        }
        changed.notify_all();
        if (worker.joinable())
            worker.join();
    }

    Status check_piece(const StepInput& input, const Piece& piece) {
        LR_TRY_ASSIGN(const Sequence* sequence, sequences->find_usable(piece.sequence));
        const bool decode = input.phase == graph::Phase::kDecode;
        if (piece.tokens.empty() && (!decode || !sequence->has_last))
            return fail(Code::kInvalidArgument, "{} step: sequence {}: expected a token, got none",
                        decode ? "decode" : "prefill", piece.sequence.index);
        const std::int64_t vocabulary = opened.config().vocab_size;
        return check(piece, decode, vocabulary,
                     options.vocab_limit > 0 ? options.vocab_limit : vocabulary);
    }

    Status check_input(const StepInput& input) {
        const auto count = std::ssize(input.pieces);
        if (count < 1 || count > options.sequences)
            return fail(Code::kInvalidArgument, "step: expected 1..{} pieces, got {}",
                        options.sequences, count);
        std::int64_t rows = 0;
        for (const Piece& piece : input.pieces) {
            LR_TRY(check_piece(input, piece));
            rows += piece.rows();
            for (const Piece& other : input.pieces)
                if (&other != &piece && other.sequence.index == piece.sequence.index)
                    return fail(Code::kInvalidArgument, "step: sequence {} appears twice",
                                piece.sequence.index);
        }
        if (input.phase == graph::Phase::kPrefill && rows > options.prefill_rows)
            return fail(Code::kInvalidArgument,
                        "prefill step: expected at most {} tokens, got {}; cut the prompt at a "
                        "multiple of {}",
                        options.prefill_rows, rows, ops::kGdnChunk);
        return {};
    }

    Result<RankedStep> step_for(const StepInput& input) {
        std::int64_t rows = 0, logit_rows = 0;
        for (const Piece& piece : input.pieces) {
            rows += piece.rows();
            logit_rows += piece.logit_rows();
        }
        const std::int64_t batch = bucket(std::ssize(input.pieces), 1);
        if (input.phase == graph::Phase::kDecode)
            return ranks->prepare(shape(input.phase, batch, batch, batch));
        return ranks->prepare(
            shape(input.phase, bucket(rows, ops::kGdnChunk), batch, bucket(logit_rows, 1)));
    }

    Result<Ticket> submit(const StepInput& input) {
        const std::lock_guard lock(mutex);
        LR_TRY(check_input(input));
        for (const Piece& piece : input.pieces) { // all or nothing: pages grown stay owned
            LR_TRY_ASSIGN(Sequence * sequence, sequences->find(piece.sequence));
            LR_TRY(sequences->reserve(*sequence, piece.rows()));
        }
        Job job;
        job.ticket = next_ticket;
        job.copy_logits = input.copy_logits;
        LR_TRY_ASSIGN(job.step, step_for(input));
        fill(input, job);
        pending.push_back(std::move(job));
        changed.notify_all();
        return Ticket{next_ticket++};
    }

    // The step is accepted: advances the sequences and writes the step's inputs.
    void fill(const StepInput& input, Job& job) {
        std::vector<BatchPiece> pieces;
        for (const Piece& piece : input.pieces) {
            Sequence& sequence = sequences->at(piece.sequence.index);
            if (sequence.fresh)
                job.zero_slots.push_back(sequence.slot);
            sequence.fresh = false;
            pieces.push_back({.piece = piece,
                              .position = sequence.length,
                              .slot = sequence.slot,
                              .pages = sequence.pages});
            sequence.length += piece.rows();
            sequence.has_last = piece.logits != Logits::kNone;
        }
        job.inputs.resize(static_cast<std::size_t>(job.step.inputs().bytes()));
        const auto ranges = job.step.inputs().fill(job.inputs.data(), pieces);
        for (std::size_t i = 0; i < pieces.size(); ++i) {
            const Piece& piece = input.pieces[i];
            job.pieces.push_back({.sequence = piece.sequence,
                                  .slot = pieces[i].slot,
                                  .range = ranges[i],
                                  .take_last = piece.tokens.empty(),
                                  .choices = piece.choices,
                                  .top_logprobs = piece.logprobs.top});
        }
    }

    Result<SequenceId> fork(SequenceId id) {
        const std::lock_guard lock(mutex);
        LR_TRY_ASSIGN(const SequenceId child, sequences->fork(id));
        const Sequence& from = sequences->at(id.index);
        const Sequence& to = sequences->at(child.index);
        if (from.fresh)
            return child;
        Job job;
        job.ticket = next_ticket++; // nobody waits for it
        job.copy = {.from_slot = from.slot,
                    .to_slot = to.slot,
                    .from_pages = from.pages,
                    .to_pages = to.pages,
                    .to = child};
        pending.push_back(std::move(job));
        changed.notify_all();
        return child;
    }

    void work() {
        std::unique_lock lock(mutex);
        while (true) {
            changed.wait(lock, [this] { return stopping || !pending.empty(); });
            if (stopping)
                return;
            Job job = std::move(pending.front());
            pending.pop_front();
            running_ticket = job.ticket;
            lock.unlock();
            if (job.copy) {
                copy_state(*job.copy);
                lock.lock();
                if (tail(job.copy->to_slot).failed)
                    mark_failed(job.copy->to);
            } else {
                Result<StepOutput> output = run(job);
                lock.lock();
                for (const JobPiece& piece : job.pieces)
                    if (!output)
                        mark_failed(piece.sequence);
                finished.emplace(job.ticket, std::move(output));
            }
            running_ticket = 0;
            changed.notify_all();
        }
    }

    SlotTail& tail(std::int32_t slot) { return tails[static_cast<std::size_t>(slot)]; }

    void copy_state(const StateCopy& copy) {
        const Status copied =
            ranks->copy_state(copy.from_slot, copy.to_slot, copy.from_pages, copy.to_pages);
        tail(copy.to_slot) = tail(copy.from_slot);
        if (!copied.ok())
            tail(copy.to_slot).failed = true;
    }

    void place_last_tokens(Job& job) {
        auto* ids = reinterpret_cast<std::int32_t*>(
            job.inputs.data() + job.step.inputs().offset(graph::Input::kTokenIds));
        for (std::size_t i = 0; i < job.pieces.size(); ++i)
            if (job.pieces[i].take_last)
                ids[i] = std::max(0, tail(job.pieces[i].slot).last_token);
    }

    void keep_last_tokens(const Job& job, const StepOutput& output) {
        for (std::size_t i = 0; i < job.pieces.size(); ++i) {
            const JobPiece& piece = job.pieces[i];
            if (piece.range.count > 0)
                tail(piece.slot).last_token =
                    output.pieces[i]
                        .tokens[static_cast<std::size_t>(piece.range.count - piece.choices)];
        }
    }

    void mark_failed(SequenceId id) {
        if (Sequence* sequence = sequences->find_open(id))
            sequence->failed = true;
    }

    Result<StepOutput> run(Job& job) {
        for (std::int32_t slot : job.zero_slots)
            tail(slot) = {};
        place_last_tokens(job);
        Result<StepOutput> output = run_step(job);
        if (output)
            keep_last_tokens(job, *output);
        else
            for (const JobPiece& piece : job.pieces)
                tail(piece.slot).failed = true;
        return output;
    }

    Result<StepOutput> run_step(const Job& job) {
        const double start = monotonic_seconds();
        LR_TRY(ranks->run(job.step, job.inputs, job.zero_slots));
        StepOutput output;
        output.seconds = monotonic_seconds() - start;
        LR_TRY(opened.checkpoint->still_intact());
        const graph::Step& step = job.step.step();
        const auto tensor = [&](graph::TensorId id) { return ranks->tensor(job.step, id); };
        for (const JobPiece& piece : job.pieces) {
            LR_TRY_ASSIGN(PieceOutput read, read_outputs(step.outputs, piece.range,
                                                         {.logits = job.copy_logits,
                                                          .top_logprobs = piece.top_logprobs},
                                                         tensor));
            output.pieces.push_back(std::move(read));
        }
        return output;
    }

    const model::OpenModel& opened;
    EngineOptions options;
    std::unique_ptr<RankGroup> ranks;
    LoadReport report;
    std::vector<SlotTail> tails; // by slot; the worker's alone

    mutable std::mutex mutex; // guards all below
    std::condition_variable changed;
    std::optional<SequenceTable> sequences;
    std::deque<Job> pending;
    std::uint64_t running_ticket = 0; // 0: none
    bool stopping = false;
    std::map<std::uint64_t, Result<StepOutput>> finished;
    std::uint64_t next_ticket = 1;
    std::thread worker;
};

namespace {

Status check_options(const EngineOptions& options, const model::Config& config) {
    if (options.context < 1 || options.context > config.max_positions)
        return fail(Code::kInvalidArgument,
                    "context: expected 1..{} (the model's max_position_embeddings), got {}",
                    config.max_positions, options.context);
    if (options.sequences < 1 || options.sequences > 65536)
        return fail(Code::kInvalidArgument, "sequences: expected 1..65536, got {}",
                    options.sequences);
    if (options.prefill_rows < ops::kGdnChunk || options.prefill_rows % ops::kGdnChunk != 0)
        return fail(Code::kInvalidArgument, "prefill rows: expected a multiple of {}, got {}",
                    ops::kGdnChunk, options.prefill_rows);
    if (options.tp < 1 || options.tp > kMaxRanks || options.ep < 1 || options.ep > kMaxRanks ||
        options.tp * options.ep > kMaxRanks)
        return fail(Code::kInvalidArgument, "ranks: expected tp * ep in 1..{}, got tp={}, ep={}",
                    kMaxRanks, options.tp, options.ep);
    if (options.vocab_limit < 0 || options.vocab_limit > config.vocab_size)
        return fail(Code::kInvalidArgument,
                    "tokenizer: {} ids are more than the model's {} vocabulary rows",
                    options.vocab_limit, config.vocab_size);
    return {};
}

// What a GPU does not do yet.
Status check_place(const EngineOptions& options) {
    if (!options.place.is_cuda())
        return {};
    if (options.tp * options.ep > 1)
        return fail(Code::kUnsupported, "cuda: expected one rank, got tp={}, ep={}", options.tp,
                    options.ep);
    if (options.precision == ops::Precision::kF32)
        return fail(Code::kUnsupported, "cuda: expected precision bf16, got f32 (the CPU has it)");
    if (options.observer && options.observer->touches_memory())
        return fail(Code::kUnsupported,
                    "cuda: an observer of the nodes' memory was given: expected the CPU");
    return {};
}

} // namespace

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::load(const model::OpenModel& opened,
                                             const EngineOptions& options) {
    const double start = monotonic_seconds();
    LR_TRY(check_options(options, opened.config()));
    LR_TRY(check_place(options));
    checkpoint::ScaleCounts scales;
    {
        ThreadPool pool(options.threads);
        LR_TRY_ASSIGN(scales, check_scales(opened, pool));
    }
    const double checked = monotonic_seconds();
    LR_TRY_ASSIGN(auto ranks,
                  RankGroup::load(opened, options.tp, options.ep, Impl::step_options(options),
                                  options.threads, options.place, options.observer));
    auto impl = std::make_unique<Impl>(opened, options, std::move(ranks));
    LR_TRY(impl->allocate_states());
    const StateSizes& sizes = impl->ranks->states().sizes();
    impl->report = {.seconds = monotonic_seconds() - start,
                    .scale_seconds = checked - start,
                    .scale_bytes = scales.bytes,
                    .weight_bytes = impl->ranks->weight_bytes(),
                    .state_bytes = impl->ranks->state_bytes(),
                    .slots = sizes.slots,
                    .kv_pages = sizes.kv_pages,
                    .threads = impl->ranks->threads(),
                    .ranks = impl->ranks->size(),
                    .device = impl->ranks->device()};
    impl->start();
    return std::unique_ptr<Engine>(new Engine(std::move(impl)));
}

const model::Config& Engine::config() const {
    return impl_->opened.config();
}
const EngineOptions& Engine::options() const {
    return impl_->options;
}
const LoadReport& Engine::report() const {
    return impl_->report;
}

Result<SequenceId> Engine::open_sequence() {
    const std::lock_guard lock(impl_->mutex);
    return impl_->sequences->open();
}

Result<SequenceId> Engine::fork_sequence(SequenceId id) {
    return impl_->fork(id);
}

Status Engine::close_sequence(SequenceId id) {
    const std::lock_guard lock(impl_->mutex);
    return impl_->sequences->close(id);
}

Result<std::int64_t> Engine::length(SequenceId id) const {
    const std::lock_guard lock(impl_->mutex);
    LR_TRY_ASSIGN(const Sequence* sequence, impl_->sequences->find(id));
    return sequence->length;
}

Result<Ticket> Engine::submit(StepInput input) {
    return impl_->submit(input);
}

Result<std::optional<StepOutput>> Engine::poll(Ticket ticket) {
    const std::lock_guard lock(impl_->mutex);
    const auto found = impl_->finished.find(ticket.number);
    if (found != impl_->finished.end()) {
        Result<StepOutput> output = std::move(found->second);
        impl_->finished.erase(found);
        if (!output)
            return fail(std::move(output).error());
        return std::optional<StepOutput>(std::move(*output));
    }
    const bool known = ticket.number >= 1 && ticket.number < impl_->next_ticket;
    const bool waiting = std::any_of(impl_->pending.begin(), impl_->pending.end(),
                                     [&](const Job& job) { return job.ticket == ticket.number; });
    if (!known || (!waiting && ticket.number != impl_->running_ticket))
        return fail(Code::kNotFound, "ticket {}: never given, or its result was taken",
                    ticket.number);
    return std::optional<StepOutput>();
}

Result<StepOutput> Engine::wait(Ticket ticket) {
    while (true) {
        LR_TRY_ASSIGN(std::optional<StepOutput> output, poll(ticket));
        if (output)
            return std::move(*output);
        std::unique_lock lock(impl_->mutex);
        impl_->changed.wait(lock, [&] { return impl_->finished.contains(ticket.number); });
    }
}

Result<std::vector<std::byte>> Engine::read_state(SequenceId id, std::int32_t layer,
                                                  graph::StateKind kind) {
    std::unique_lock lock(impl_->mutex);
    LR_TRY_ASSIGN(const Sequence* sequence, impl_->sequences->find(id));
    impl_->changed.wait(lock, [&] { return impl_->pending.empty() && impl_->running_ticket == 0; });
    if (kind == graph::StateKind::kTokenCounts)
        return impl_->ranks->read_state(-1, kind, sequence->slot, sequence->pages,
                                        sequence->length);
    if (layer < 0 || layer >= impl_->opened.config().layer_count())
        return fail(Code::kInvalidArgument, "layer: expected 0..{}, got {}",
                    impl_->opened.config().layer_count() - 1, layer);
    return impl_->ranks->read_state(layer, kind, sequence->slot, sequence->pages, sequence->length);
}

} // namespace lr::engine
