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

// gram [64, 64]: kn_i . kn_j for j <= i.
void key_products(const float* keys, float* transposed, std::int64_t length, std::int64_t dk,
                  float* gram) {
    std::fill_n(transposed, dk * kChunk, 0.0f);
    std::fill_n(gram, kSquare, 0.0f);
    gdn::transpose({keys, dk}, length, dk, {transposed, kChunk});
    gdn::add_product({gram, kChunk}, {keys, dk, 1}, {transposed, kChunk}, length, dk,
                     gdn::whole_tiles(length), gdn::Part::kLowerResult);
}

// inverse [64, 64] = (I + A)^-1, row by row; zero above the diagonal.
void invert(const float* gram, const float* beta, const float* g, std::int64_t length,
            float* inverse) {
    std::fill_n(inverse, kSquare, 0.0f);
    for (std::int64_t i = 0; i < length; ++i) {
        float* row = inverse + i * kChunk;
        for (std::int64_t m = 0; m < i; ++m) {
            const float a = beta[i] * gram[i * kChunk + m] * std::exp(g[i] - g[m]);
            const float* earlier = inverse + m * kChunk;
            for (std::int64_t j = 0; j <= m; j += kLanes)
                for (std::int64_t lane = 0; lane < kLanes; ++lane)
                    row[j + lane] -= a * earlier[j + lane];
        }
        row[i] = 1.0f;
    }
}

void solve_chunk(const ops::ChunkKktSolveArgs& args, gdn::Chunk chunk, std::int64_t key_head) {
    const std::int64_t dk = args.k.shape[2];
    const std::int64_t group = args.beta.shape[1] / args.k.shape[1];
    gdn::ScratchPieces scratch(2 * kChunk * dk + 2 * kSquare);
    float* keys = scratch.take(kChunk * dk);
    float* transposed = scratch.take(kChunk * dk);
    float* gram = scratch.take(kSquare);
    float* inverse = scratch.take(kSquare);
    gdn::load_head(args.k, chunk, key_head, dk, keys);
    key_products(keys, transposed, chunk.length, dk, gram);

    std::array<float, kChunk> beta;
    std::array<float, kChunk> g;
    for (std::int64_t head = key_head * group; head < (key_head + 1) * group; ++head) {
        gdn::load_scalars(args.beta, chunk, head, beta.data());
        gdn::load_scalars(args.g_cumsum, chunk, head, g.data());
        invert(gram, beta.data(), g.data(), chunk.length, inverse);
        for (std::int64_t i = 0; i < chunk.length; ++i)
            store_floats(args.a_inv, chunk.row + i, head * kChunk, i + 1, inverse + i * kChunk);
    }
}

} // namespace

void chunk_kkt_solve(const ops::ChunkKktSolveArgs& args, ThreadPool& pool) {
    const std::int64_t key_heads = args.k.shape[1];
    const std::int64_t items = args.chunk_row.rows() * key_heads;
    pool.parallel_for(items, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t item = begin; item < end; ++item) {
            const gdn::Chunk chunk =
                gdn::chunk_at(args.chunk_row, args.chunk_len, item / key_heads, args.k.rows());
            if (chunk.length > 0)
                solve_chunk(args, chunk, item % key_heads);
        }
    });
}

} // namespace lr::cpu
