// SPDX-License-Identifier: Apache-2.0
//
// One thread a chunk and head, rows ascending: the bits of the CPU reference.
#include "cuda/detail/launch.h"
#include "cuda/detail/math.h"
#include "cuda/gdn/gdn.h"

#include <cstdint>

namespace lr::cuda {
namespace {

using namespace detail;

constexpr int kThreads = 64;

struct Params {
    Rows<const float> g;
    const std::int32_t* chunk_row;
    const std::int32_t* chunk_len;
    const std::int32_t* n_live;
    Rows<float> g_cumsum;
    std::int64_t n, heads, chunks;
};

__global__ void __launch_bounds__(kThreads) chunk_cumsum_kernel(Params p) {
    wait_for_inputs();
    const std::int64_t head = std::int64_t{blockIdx.y} * kThreads + threadIdx.x;
    if (head >= p.heads)
        return;
    if (blockIdx.x == p.chunks) { // the rows behind n_live
        for (std::int64_t row = p.n_live ? *p.n_live : p.n; row < p.n; ++row)
            p.g_cumsum[row][head] = 0.0f;
        return;
    }
    const std::int64_t first = p.chunk_row[blockIdx.x];
    const std::int64_t live = p.n_live ? min(p.n, std::int64_t{*p.n_live}) : p.n;
    const std::int64_t end = min(live, first + p.chunk_len[blockIdx.x]);
    float sum = 0;
    for (std::int64_t row = first; row < end; ++row) {
        sum += p.g[row][head];
        p.g_cumsum[row][head] = sum;
    }
}

} // namespace

Status chunk_cumsum(const ops::ChunkCumsumArgs& args, const Lane& lane) {
    const Params params = {rows<const float>(args.g),
                           values<const std::int32_t>(args.chunk_row),
                           values<const std::int32_t>(args.chunk_len),
                           values<const std::int32_t>(args.n_live),
                           rows<float>(args.g_cumsum),
                           args.g.rows(),
                           args.g.shape[1],
                           args.chunk_row.rows()};
    if (params.n == 0)
        return {};
    return launch(
        "chunk_cumsum", chunk_cumsum_kernel,
        {{static_cast<unsigned>(params.chunks) + 1, blocks_for(params.heads, kThreads)}, kThreads},
        lane.stream, params);
}

} // namespace lr::cuda
