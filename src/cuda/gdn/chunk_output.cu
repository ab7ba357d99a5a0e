// SPDX-License-Identifier: Apache-2.0
//
// One block a chunk and value head: the scores of the chunk go through shared memory once, in bf16;
// both products of a column end in the same accumulator.
#include "cuda/gdn/chunk.h"
#include "cuda/gdn/gdn.h"

#include <cmath>

namespace lr::cuda {
namespace {

using namespace detail;

struct Params {
    Rows<const Bf16> q, k, v_new;
    const Bf16* h; // [NC, Hv, dv, dk]
    Rows<const float> g;
    const std::int32_t* chunk_row;
    const std::int32_t* chunk_len;
    Rows<Bf16> o;
    int heads, group, dk, dv;
    float scale; // dk^-0.5
};

// p_ij = (q_i . k_j) exp(G_i - G_j) for j <= i, else 0.
__device__ void weigh_scores(Tile q, Tile k, const float* g, int row, int dk, Tile scores) {
    for (int column = 0; column <= row; column += 16) {
        float c[2][4] = {};
        multiply16<Right::kByColumn>(c, q, row, k, column, dk);
        for_results(c, row, column, [&](int i, int j, float low, float high) {
            const float first = j <= i ? low * expf(g[i] - g[j]) : 0.0f;
            const float second = j + 1 <= i ? high * expf(g[i] - g[j + 1]) : 0.0f;
            *reinterpret_cast<std::uint32_t*>(scores.row(i) + j) = pack_bf16(first, second);
        });
    }
}

__global__ void __launch_bounds__(kChunkThreads) chunk_output_kernel(Params p) {
    wait_for_inputs();
    extern __shared__ __align__(16) std::byte shared[];
    __shared__ float g[kChunk];
    Pieces pieces{shared};
    const Tile q = pieces.tile(kChunk, p.dk), k = pieces.tile(kChunk, p.dk);
    const Tile state = pieces.tile(p.dv, p.dk), v = pieces.tile(kChunk, p.dv);
    const Tile scores = pieces.tile(kChunk, kChunk);
    const std::int64_t head = blockIdx.y;
    const Chunk chunk = chunk_at(p.chunk_row, p.chunk_len, blockIdx.x);
    if (chunk.length == 0)
        return;
    load_rows(q, p.q, chunk, head / p.group * p.dk, p.dk);
    load_rows(k, p.k, chunk, head / p.group * p.dk, p.dk);
    load_rows(v, p.v_new, chunk, head * p.dv, p.dv);
    const Bf16* const h = p.h + (std::int64_t{blockIdx.x} * p.heads + head) * p.dv * p.dk;
    for (int i = threadIdx.x * 8; i < p.dv * p.dk; i += kChunkThreads * 8)
        store8(state.row(i / p.dk) + i % p.dk, load8(h + i));
    load_scalars(g, p.g, chunk, static_cast<int>(head));
    __syncthreads();
    const int row = static_cast<int>(threadIdx.x) / kWarp * 16;
    weigh_scores(q, k, g, row, p.dk, scores);
    __syncwarp();
    const int first = row + static_cast<int>(threadIdx.x) % kWarp / 4;
    const float decay[2] = {expf(g[first]), expf(g[first + 8])};
    for (int column = 0; column < p.dv; column += 16) {
        float c[2][4] = {};
        multiply16<Right::kByColumn>(c, q, row, state, column, p.dk);
        for (int tile = 0; tile < 2; ++tile)
            for (int e = 0; e < 4; ++e)
                c[tile][e] *= decay[e / 2];
        multiply16<Right::kByRow>(c, scores, row, v, column, row + 16);
        for_results(c, row, column, [&](int i, int j, float low, float high) {
            if (i < chunk.length)
                *reinterpret_cast<std::uint32_t*>(p.o[chunk.row + i] + head * p.dv + j) =
                    pack_bf16(low * p.scale, high * p.scale);
        });
    }
}

} // namespace

Status chunk_output(const ops::ChunkOutputArgs& args, const Lane& lane) {
    constexpr auto kOp = "chunk_output";
    LR_TRY(require_model_precision(kOp, args));
    const auto named = {Named{"q", args.q}, Named{"k", args.k}, Named{"v_new", args.v_new},
                        Named{"h", args.h}, Named{"o", args.o}};
    LR_TRY(require_dtype(kOp, DType::kBF16, named));
    LR_TRY(require_vectors(kOp, named));
    Params params{};
    params.q = rows<const Bf16>(args.q);
    params.k = rows<const Bf16>(args.k);
    params.v_new = rows<const Bf16>(args.v_new);
    params.h = values<const Bf16>(args.h);
    params.g = rows<const float>(args.g_cumsum);
    params.chunk_row = values<const std::int32_t>(args.chunk_row);
    params.chunk_len = values<const std::int32_t>(args.chunk_len);
    params.o = rows<Bf16>(args.o);
    params.heads = static_cast<int>(args.v_new.shape[1]);
    params.group = static_cast<int>(args.v_new.shape[1] / args.k.shape[1]);
    params.dk = static_cast<int>(args.k.shape[2]);
    params.dv = static_cast<int>(args.v_new.shape[2]);
    params.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(params.dk)));
    const std::size_t bytes = 2 * tile_bytes(kChunk, params.dk) + tile_bytes(params.dv, params.dk) +
                              tile_bytes(kChunk, params.dv) + tile_bytes(kChunk, kChunk);
    return launch(
        kOp, chunk_output_kernel,
        {{static_cast<unsigned>(args.chunk_row.rows()), static_cast<unsigned>(params.heads)},
         kChunkThreads,
         bytes},
        lane.stream, params);
}

} // namespace lr::cuda
