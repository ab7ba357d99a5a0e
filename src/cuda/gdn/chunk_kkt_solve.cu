// SPDX-License-Identifier: Apache-2.0
//
// One block a chunk and value head. The products of keys run on the tensor cores; the substitution
// is one thread a column, whose entries no other thread needs.
#include "cuda/gdn/chunk.h"
#include "cuda/gdn/gdn.h"

namespace lr::cuda {
namespace {

using namespace detail;

constexpr int kStride = kChunk + 1;

struct Params {
    Rows<const Bf16> k;
    Rows<const float> beta, g;
    const std::int32_t* chunk_row;
    const std::int32_t* chunk_len;
    Rows<Bf16> a_inv;
    int dk, group;
};

__global__ void __launch_bounds__(kChunkThreads) chunk_kkt_solve_kernel(Params p) {
    wait_for_inputs();
    extern __shared__ __align__(16) std::byte shared[];
    __shared__ float beta[kChunk], g[kChunk];
    Pieces pieces{shared};
    const Tile keys = pieces.tile(kChunk, p.dk);
    float* const a = pieces.take<float>(kChunk * kStride);
    float* const x = pieces.take<float>(kChunk * kStride);
    const int head = static_cast<int>(blockIdx.y);
    const Chunk chunk = chunk_at(p.chunk_row, p.chunk_len, blockIdx.x);
    if (chunk.length == 0)
        return;
    load_rows(keys, p.k, chunk, std::int64_t{head / p.group} * p.dk, p.dk);
    load_scalars(beta, p.beta, chunk, head);
    load_scalars(g, p.g, chunk, head);
    __syncthreads();
    const int row = static_cast<int>(threadIdx.x) / kWarp * 16;
    for (int column = 0; column <= row; column += 16) {
        float c[2][4] = {};
        multiply16<Right::kByColumn>(c, keys, row, keys, column, p.dk);
        for_results(c, row, column, [&](int i, int j, float low, float high) {
            a[i * kStride + j] = j < i ? beta[i] * low * expf(g[i] - g[j]) : 0.0f;
            a[i * kStride + j + 1] = j + 1 < i ? beta[i] * high * expf(g[i] - g[j + 1]) : 0.0f;
        });
    }
    __syncthreads();
    if (threadIdx.x >= kChunk)
        return;
    const int j = static_cast<int>(threadIdx.x);
    const int first = j / kWarp * kWarp; // entries before are zero for the whole warp
    for (int i = first; i < chunk.length; ++i) {
        float sum = 0;
        for (int m = first; m < i; ++m)
            sum -= a[i * kStride + m] * x[m * kStride + j];
        const float value = j < i ? sum : j == i ? 1.0f : 0.0f;
        x[i * kStride + j] = value;
        if (j <= i)
            p.a_inv[chunk.row + i][head * kChunk + j] = to_bf16(value);
    }
}

} // namespace

Status chunk_kkt_solve(const ops::ChunkKktSolveArgs& args, const Lane& lane) {
    constexpr auto kOp = "chunk_kkt_solve";
    LR_TRY(require_model_precision(kOp, args));
    LR_TRY(require_dtype(kOp, DType::kBF16, {{"k", args.k}, {"a_inv", args.a_inv}}));
    LR_TRY(require_vectors(kOp, {{"k", args.k}}));
    const Params params = {rows<const Bf16>(args.k),
                           rows<const float>(args.beta),
                           rows<const float>(args.g_cumsum),
                           values<const std::int32_t>(args.chunk_row),
                           values<const std::int32_t>(args.chunk_len),
                           rows<Bf16>(args.a_inv),
                           static_cast<int>(args.k.shape[2]),
                           static_cast<int>(args.beta.shape[1] / args.k.shape[1])};
    const std::size_t bytes =
        tile_bytes(kChunk, params.dk) + 2 * kChunk * kStride * sizeof(float) + 32;
    return launch(
        kOp, chunk_kkt_solve_kernel,
        {{static_cast<unsigned>(args.chunk_row.rows()), static_cast<unsigned>(args.beta.shape[1])},
         kChunkThreads,
         bytes},
        lane.stream, params);
}

} // namespace lr::cuda
