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

// out = inverse times (factor_j x_j), both operands as the tensor cores would read them.
void weigh_rows(const ops::ChunkRecomputeWuArgs& args, gdn::Chunk chunk, std::int64_t head,
                const float* inverse, const float* factor, float* x, float* product, View out) {
    const std::int64_t width = out.shape[2];
    for (std::int64_t i = 0; i < chunk.length; ++i)
        for (std::int64_t c = 0; c < width; ++c)
            x[i * width + c] *= factor[i];
    gdn::round_operand(args.precision, x, chunk.length * width);
    std::fill_n(product, chunk.length * width, 0.0f);
    gdn::add_product({product, width}, {inverse, kChunk, 1}, {x, width}, chunk.length, chunk.length,
                     width, gdn::Part::kLowerLeft);
    gdn::store_head(out, chunk, head, width, product);
}

void recompute_chunk(const ops::ChunkRecomputeWuArgs& args, gdn::Chunk chunk, std::int64_t head) {
    const std::int64_t dk = args.k.shape[2];
    const std::int64_t dv = args.v.shape[2];
    const std::int64_t key_head = head / (args.v.shape[1] / args.k.shape[1]);
    const std::int64_t widest = std::max(dk, dv);
    gdn::ScratchPieces scratch(kChunk * kChunk + 2 * kChunk * widest);
    float* inverse = scratch.take(kChunk * kChunk);
    float* x = scratch.take(kChunk * widest);
    float* product = scratch.take(kChunk * widest);
    for (std::int64_t i = 0; i < chunk.length; ++i)
        load_floats(args.a_inv, chunk.row + i, head * kChunk, i + 1, inverse + i * kChunk);

    std::array<float, kChunk> factor;
    gdn::load_scalars(args.beta, chunk, head, factor.data());
    gdn::load_head(args.v, chunk, head, dv, x);
    weigh_rows(args, chunk, head, inverse, factor.data(), x, product, args.u);

    for (std::int64_t i = 0; i < chunk.length; ++i)
        factor[static_cast<std::size_t>(i)] *=
            std::exp(args.g_cumsum.row_as<float>(chunk.row + i)[head]);
    gdn::load_head(args.k, chunk, key_head, dk, x);
    weigh_rows(args, chunk, head, inverse, factor.data(), x, product, args.w);
}

} // namespace

void chunk_recompute_wu(const ops::ChunkRecomputeWuArgs& args, ThreadPool& pool) {
    const std::int64_t n = args.v.rows();
    const std::int64_t heads = args.v.shape[1];
    const std::int64_t live = live_rows(args.n_live, n);
    const std::int64_t items = args.chunk_row.rows() * heads;
    pool.parallel_for(items, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t item = begin; item < end; ++item) {
            const gdn::Chunk chunk = gdn::chunk_at(args.chunk_row, args.chunk_len, item / heads, n);
            if (chunk.length > 0)
                recompute_chunk(args, chunk, item % heads);
        }
    });
    zero_rows(args.w, live);
    zero_rows(args.u, live);
}

} // namespace lr::cpu
