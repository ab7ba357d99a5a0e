// SPDX-License-Identifier: Apache-2.0
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
constexpr std::int64_t kSquare = kChunk * kChunk;

// The chunk's rows of one key head, and what its value heads share.
struct Queries {
    const float* q;     // [length, dk]
    const float* score; // [64, 64], q_i . k_j for j <= i
    std::int64_t dk;
};

// p [64, 64] = score_ij exp(G_i - G_j) for j <= i, as the second product reads it.
void weigh_scores(const ops::ChunkOutputArgs& args, const Queries& queries, const float* g,
                  std::int64_t length, float* p) {
    for (std::int64_t i = 0; i < length; ++i) {
        for (std::int64_t j = 0; j <= i; ++j)
            p[i * kChunk + j] = queries.score[i * kChunk + j] * std::exp(g[i] - g[j]);
        gdn::round_operand(args.precision, p + i * kChunk, i + 1);
    }
}

void read_head(const ops::ChunkOutputArgs& args, const Queries& queries, std::int64_t c,
               gdn::Chunk chunk, std::int64_t head, gdn::ScratchPieces scratch) {
    const std::int64_t dk = queries.dk;
    const std::int64_t dv = args.v_new.shape[2];
    float* upright = scratch.take(dv * dk);
    float* state = scratch.take(dk * dv);
    float* p = scratch.take(kSquare);
    float* values = scratch.take(kChunk * dv);
    float* o = scratch.take(kChunk * dv);
    load_floats(args.h, c, head * dv * dk, dv * dk, upright);
    gdn::transpose({upright, dk}, dv, dk, {state, dv});
    gdn::load_head(args.v_new, chunk, head, dv, values);
    std::array<float, kChunk> g;
    gdn::load_scalars(args.g_cumsum, chunk, head, g.data());

    // o_i = exp(G_i) (h q_i)
    std::fill_n(o, chunk.length * dv, 0.0f);
    gdn::add_product({o, dv}, {queries.q, dk, 1}, {state, dv}, chunk.length, dk, dv);
    for (std::int64_t i = 0; i < chunk.length; ++i) {
        const float decay = std::exp(g[static_cast<std::size_t>(i)]);
        for (std::int64_t column = 0; column < dv; ++column)
            o[i * dv + column] *= decay;
    }
    // o_i += sum_j P_ij v_new_j, then the scale of the queries
    weigh_scores(args, queries, g.data(), chunk.length, p);
    gdn::add_product({o, dv}, {p, kChunk, 1}, {values, dv}, chunk.length, chunk.length, dv,
                     gdn::Part::kLowerLeft);
    const auto scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(dk)));
    for (std::int64_t i = 0; i < chunk.length * dv; ++i)
        o[i] *= scale;
    gdn::store_head(args.o, chunk, head, dv, o);
}

void read_chunk(const ops::ChunkOutputArgs& args, std::int64_t c, gdn::Chunk chunk,
                std::int64_t key_head) {
    const std::int64_t dk = args.k.shape[2];
    const std::int64_t dv = args.v_new.shape[2];
    const std::int64_t group = args.v_new.shape[1] / args.k.shape[1];
    gdn::ScratchPieces scratch(3 * kChunk * dk + 2 * kSquare + 2 * dk * dv + 2 * kChunk * dv);
    float* q = scratch.take(kChunk * dk);
    float* k = scratch.take(kChunk * dk);
    float* transposed = scratch.take(kChunk * dk);
    float* score = scratch.take(kSquare);
    gdn::load_head(args.q, chunk, key_head, dk, q);
    gdn::load_head(args.k, chunk, key_head, dk, k);
    std::fill_n(transposed, dk * kChunk, 0.0f);
    std::fill_n(score, kSquare, 0.0f);
    gdn::transpose({k, dk}, chunk.length, dk, {transposed, kChunk});
    gdn::add_product({score, kChunk}, {q, dk, 1}, {transposed, kChunk}, chunk.length, dk,
                     gdn::whole_tiles(chunk.length), gdn::Part::kLowerResult);
    for (std::int64_t head = key_head * group; head < (key_head + 1) * group; ++head)
        read_head(args, {q, score, dk}, c, chunk, head, scratch);
}

} // namespace

void chunk_output(const ops::ChunkOutputArgs& args, ThreadPool& pool) {
    const std::int64_t key_heads = args.k.shape[1];
    const std::int64_t items = args.chunk_row.rows() * key_heads;
    pool.parallel_for(items, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t item = begin; item < end; ++item) {
            const std::int64_t c = item / key_heads;
            const gdn::Chunk chunk =
                gdn::chunk_at(args.chunk_row, args.chunk_len, c, args.k.rows());
            if (chunk.length > 0)
                read_chunk(args, c, chunk, item % key_heads);
        }
    });
}

} // namespace lr::cpu
