// SPDX-License-Identifier: Apache-2.0
//
// The state is held transposed, [dk, dv], so that both products run along rows of it.
#include "core/thread_pool.h"
#include "cpu/gdn/chunk.h"
#include "cpu/gdn/gdn.h"
#include "cpu/gdn/product.h"
#include "cpu/rows.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace lr::cpu {
namespace {

constexpr std::int64_t kChunk = ops::kGdnChunk;

// One value head of one sequence.
class StateWalk {
  public:
    StateWalk(const ops::ChunkStateArgs& args, std::int64_t head)
        : args_(args), head_(head), key_head_(head / (args.u.shape[1] / args.k.shape[1])),
          dk_(args.k.shape[2]), dv_(args.u.shape[2]),
          scratch_(3 * dk_ * dv_ + 2 * kChunk * (dk_ + dv_)), state_(scratch_.take(dk_ * dv_)),
          rounded_(scratch_.take(dk_ * dv_)), upright_(scratch_.take(dk_ * dv_)),
          keys_(scratch_.take(kChunk * dk_)), w_(scratch_.take(kChunk * dk_)),
          u_(scratch_.take(kChunk * dv_)), product_(scratch_.take(kChunk * dv_)) {}

    void start(std::int64_t slot, bool stored) {
        std::fill_n(state_, dk_ * dv_, 0.0f);
        if (!stored)
            return;
        load_floats(args_.ssm_state, slot, head_ * dv_ * dk_, dv_ * dk_, upright_);
        gdn::transpose({upright_, dk_}, dv_, dk_, {state_, dv_});
    }

    void finish(std::int64_t slot) { store_state(args_.ssm_state, slot); }

    void step(std::int64_t c, gdn::Chunk chunk) {
        store_state(args_.h, c);
        new_values(chunk);
        advance(chunk);
    }

  private:
    void store_state(View to, std::int64_t row) {
        gdn::transpose({state_, dv_}, dk_, dv_, {upright_, dk_});
        store_floats(to, row, head_ * dv_ * dk_, dv_ * dk_, upright_);
    }

    // u_ becomes v_new_i = u_i - S w_i.
    void new_values(gdn::Chunk chunk) {
        gdn::load_head(args_.w, chunk, head_, dk_, w_);
        gdn::load_head(args_.u, chunk, head_, dv_, u_);
        std::copy_n(state_, dk_ * dv_, rounded_);
        gdn::round_operand(args_.precision, rounded_, dk_ * dv_);
        std::fill_n(product_, chunk.length * dv_, 0.0f);
        gdn::add_product({product_, dv_}, {w_, dk_, 1}, {rounded_, dv_}, chunk.length, dk_, dv_);
        for (std::int64_t i = 0; i < chunk.length * dv_; ++i)
            u_[i] -= product_[i];
        gdn::store_head(args_.v_new, chunk, head_, dv_, u_);
    }

    // S <- exp(G_last) S + sum_i (exp(G_last - G_i) v_new_i) kn_i^T.
    void advance(gdn::Chunk chunk) {
        std::array<float, kChunk> g;
        gdn::load_scalars(args_.g_cumsum, chunk, head_, g.data());
        const float g_last = g[static_cast<std::size_t>(chunk.length - 1)];
        for (std::int64_t i = 0; i < chunk.length; ++i) {
            const float decay = std::exp(g_last - g[static_cast<std::size_t>(i)]);
            for (std::int64_t c = 0; c < dv_; ++c)
                u_[i * dv_ + c] *= decay;
        }
        gdn::round_operand(args_.precision, u_, chunk.length * dv_);
        gdn::load_head(args_.k, chunk, key_head_, dk_, keys_);
        const float decay = std::exp(g_last);
        for (std::int64_t i = 0; i < dk_ * dv_; ++i)
            state_[i] *= decay;
        gdn::add_product({state_, dv_}, {keys_, 1, dk_}, {u_, dv_}, dk_, chunk.length, dv_);
    }

    const ops::ChunkStateArgs& args_;
    std::int64_t head_;
    std::int64_t key_head_;
    std::int64_t dk_;
    std::int64_t dv_;
    gdn::ScratchPieces scratch_;
    float* state_;   // [dk, dv]
    float* rounded_; // [dk, dv]
    float* upright_; // [dv, dk]
    float* keys_;    // [length, dk]
    float* w_;       // [length, dk]
    float* u_;       // [length, dv]
    float* product_; // [length, dv]
};

// The chunks of a sequence without a slot.
void zero_chunks(const ops::ChunkStateArgs& args, std::int64_t head, std::int64_t begin,
                 std::int64_t end) {
    const std::int64_t dv = args.u.shape[2];
    const std::int64_t state = dv * args.k.shape[2];
    float* zeros = thread_scratch(0, state);
    std::fill_n(zeros, state, 0.0f);
    for (std::int64_t c = begin; c < end; ++c) {
        const gdn::Chunk chunk =
            gdn::chunk_at(args.chunk_row, args.chunk_len, c, args.v_new.rows());
        store_floats(args.h, c, head * state, state, zeros);
        for (std::int64_t i = 0; i < chunk.length; ++i)
            store_floats(args.v_new, chunk.row + i, head * dv, dv, zeros);
    }
}

void walk_sequence(const ops::ChunkStateArgs& args, std::int64_t sequence, std::int64_t head) {
    const std::int64_t begin = int_at(args.seq_chunk, sequence);
    const std::int64_t end = int_at(args.seq_chunk, sequence + 1);
    const std::int64_t slot = int_at(args.slot, sequence);
    if (begin == end)
        return;
    if (slot < 0)
        return zero_chunks(args, head, begin, end);
    StateWalk walk(args, head);
    walk.start(slot, args.mask.empty() || int_at(args.mask, sequence) != 0);
    for (std::int64_t c = begin; c < end; ++c) {
        const gdn::Chunk chunk =
            gdn::chunk_at(args.chunk_row, args.chunk_len, c, args.v_new.rows());
        LR_CHECK_GT(chunk.length, 0);
        walk.step(c, chunk);
    }
    walk.finish(slot);
}

} // namespace

void chunk_state(const ops::ChunkStateArgs& args, ThreadPool& pool) {
    const std::int64_t heads = args.u.shape[1];
    const std::int64_t items = args.slot.rows() * heads;
    pool.parallel_for(items, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t item = begin; item < end; ++item)
            walk_sequence(args, item / heads, item % heads);
    });
    zero_rows(args.v_new, live_rows(args.n_live, args.v_new.rows()));
}

} // namespace lr::cpu
