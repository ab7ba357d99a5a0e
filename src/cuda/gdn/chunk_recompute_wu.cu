// SPDX-License-Identifier: Apache-2.0
//
// One block a chunk and value head: the inverse stays in shared memory for both products.
#include "cuda/gdn/chunk.h"
#include "cuda/gdn/gdn.h"

#include <algorithm>

namespace lr::cuda {
namespace {

using namespace detail;

struct Params {
    Rows<const Bf16> k, v;
    Rows<const float> beta, g;
    Rows<const Bf16> a_inv;
    const std::int32_t* chunk_row;
    const std::int32_t* chunk_len;
    const std::int32_t* n_live;
    Rows<Bf16> w, u;
    std::int64_t n, chunks;
    int dk, dv, group;
};

// out = inverse times (factor_j x_j).
__device__ void weigh_rows(Tile inverse, const float* factor, Rows<const Bf16> from,
                           std::int64_t first, Tile x, Chunk chunk, Rows<Bf16> out,
                           std::int64_t out_first, int width) {
    load_rows(x, from, chunk, first, width, [&](int r, const Vec8& values) {
        Vec8 weighed;
        for (int i = 0; i < 8; ++i)
            weighed.v[i] = values.v[i] * factor[r];
        return weighed;
    });
    __syncthreads();
    const int row = static_cast<int>(threadIdx.x) / kWarp * 16;
    for (int column = 0; column < width; column += 16) {
        float c[2][4] = {};
        multiply16<Right::kByRow>(c, inverse, row, x, column, row + 16);
        for_results(c, row, column, [&](int i, int j, float low, float high) {
            if (i < chunk.length)
                *reinterpret_cast<std::uint32_t*>(out[chunk.row + i] + out_first + j) =
                    pack_bf16(low, high);
        });
    }
    __syncthreads();
}

__global__ void __launch_bounds__(kChunkThreads) chunk_recompute_wu_kernel(Params p) {
    wait_for_inputs();
    extern __shared__ __align__(16) std::byte shared[];
    __shared__ float factor[kChunk], g[kChunk];
    Pieces pieces{shared};
    const Tile inverse = pieces.tile(kChunk, kChunk);
    const Tile x = pieces.tile(kChunk, max(p.dk, p.dv));
    const std::int64_t head = blockIdx.y;
    if (blockIdx.x == p.chunks) {
        zero_tail(p.w, p.n_live, p.n, head * p.dk, p.dk);
        zero_tail(p.u, p.n_live, p.n, head * p.dv, p.dv);
        return;
    }
    const Chunk chunk = chunk_at(p.chunk_row, p.chunk_len, blockIdx.x);
    if (chunk.length == 0)
        return;
    for (int i = threadIdx.x; i < kChunk * kChunk; i += kChunkThreads) {
        const int r = i / kChunk, c = i % kChunk;
        inverse.row(r)[c] =
            r < chunk.length && c <= r ? p.a_inv[chunk.row + r][head * kChunk + c] : to_bf16(0.0f);
    }
    load_scalars(factor, p.beta, chunk, static_cast<int>(head));
    load_scalars(g, p.g, chunk, static_cast<int>(head));
    __syncthreads();
    weigh_rows(inverse, factor, p.v, head * p.dv, x, chunk, p.u, head * p.dv, p.dv);
    if (threadIdx.x < kChunk)
        factor[threadIdx.x] *= expf(g[threadIdx.x]);
    __syncthreads();
    weigh_rows(inverse, factor, p.k, head / p.group * p.dk, x, chunk, p.w, head * p.dk, p.dk);
}

} // namespace

Status chunk_recompute_wu(const ops::ChunkRecomputeWuArgs& args, const Lane& lane) {
    constexpr auto kOp = "chunk_recompute_wu";
    LR_TRY(require_model_precision(kOp, args));
    const auto named = {Named{"k", args.k}, Named{"v", args.v}, Named{"w", args.w},
                        Named{"u", args.u}};
    LR_TRY(require_dtype(kOp, DType::kBF16, named));
    LR_TRY(require_vectors(kOp, named));
    LR_TRY(require_dtype(kOp, DType::kBF16, {{"a_inv", args.a_inv}}));
    const Params params = {rows<const Bf16>(args.k),
                           rows<const Bf16>(args.v),
                           rows<const float>(args.beta),
                           rows<const float>(args.g_cumsum),
                           rows<const Bf16>(args.a_inv),
                           values<const std::int32_t>(args.chunk_row),
                           values<const std::int32_t>(args.chunk_len),
                           values<const std::int32_t>(args.n_live),
                           rows<Bf16>(args.w),
                           rows<Bf16>(args.u),
                           args.v.rows(),
                           args.chunk_row.rows(),
                           static_cast<int>(args.k.shape[2]),
                           static_cast<int>(args.v.shape[2]),
                           static_cast<int>(args.v.shape[1] / args.k.shape[1])};
    const std::size_t bytes =
        tile_bytes(kChunk, kChunk) + tile_bytes(kChunk, std::max(params.dk, params.dv));
    return launch(
        kOp, chunk_recompute_wu_kernel,
        {{static_cast<unsigned>(params.chunks) + 1, static_cast<unsigned>(args.v.shape[1])},
         kChunkThreads,
         bytes},
        lane.stream, params);
}

} // namespace lr::cuda
