// SPDX-License-Identifier: Apache-2.0
//
// Few pairs: one block does all. Many: each expert counts its pairs, one block scans the counts,
// and each expert places its pairs. Places are counted in ascending order of the pairs, so rows are
// in that order whatever the device does.
#include "cuda/detail/launch.h"
#include "cuda/detail/math.h"
#include "cuda/experts/experts.h"
#include "experts/endpoints.h"

#include <cstdint>

namespace lr::cuda {
namespace {

using namespace detail;

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarp;
constexpr int kOneBlock = 1024; // experts, and pairs for which one block is enough

struct Params {
    Rows<const std::int32_t> ids; // [n, K]
    Rows<const Bf16> weights;
    Rows<Bf16> weights_out;
    const std::int32_t* n_live;
    std::int32_t* counts;
    std::int32_t* start;
    std::int32_t* end;
    std::int32_t* row_map;
    std::int32_t* row_of;
    std::int64_t n, rows;
    int slots, local, first_expert, align;

    __device__ std::int64_t live_pairs() const {
        return (n_live ? min(n, std::int64_t{*n_live}) : n) * slots;
    }
    // The local expert of a pair, -1 of another rank or none.
    __device__ int expert_of(std::int64_t flat) const {
        const int id = ids[flat / slots][flat % slots];
        const int e = id < 0 ? -1 : id - first_expert;
        return e >= 0 && e < local ? e : -1;
    }
};

__global__ void __launch_bounds__(kThreads) count_pairs_kernel(Params p) {
    wait_for_inputs();
    __shared__ int total;
    if (threadIdx.x == 0)
        total = 0;
    __syncthreads();
    const int e = static_cast<int>(blockIdx.x);
    const std::int64_t pairs = p.live_pairs();
    int mine = 0;
    for (std::int64_t flat = threadIdx.x; flat < pairs; flat += kThreads)
        mine += p.expert_of(flat) == e;
    if (mine > 0)
        atomicAdd(&total, mine);
    __syncthreads();
    if (threadIdx.x == 0)
        p.counts[e] = total;
}

// Endpoints of at most kOneBlock experts by as many threads: since every start is aligned, it is
// the sum of the aligned counts before it. `scratch` has an entry for each warp.
__device__ void write_endpoints(const Params& p, int count, int* scratch) {
    const int e = static_cast<int>(threadIdx.x), lane = e % kWarp, warp = e / kWarp;
    const int aligned = static_cast<int>(experts::align_up(count, p.align));
    int before = aligned; // inclusive
    for (int step = 1; step < kWarp; step *= 2) {
        const int other = __shfl_up_sync(kFullMask, before, step);
        before += lane >= step ? other : 0;
    }
    if (lane == kWarp - 1)
        scratch[warp] = before;
    __syncthreads();
    int start = before - aligned;
    for (int other = 0; other < warp; ++other)
        start += scratch[other];
    if (e < p.local) {
        p.counts[e] = count;
        p.start[e] = start;
        p.end[e] = start + count;
    }
    __syncthreads();
}

__global__ void __launch_bounds__(kOneBlock) scan_kernel(Params p) {
    wait_for_inputs();
    __shared__ int scratch[kOneBlock / kWarp];
    const int e = static_cast<int>(threadIdx.x);
    write_endpoints(p, e < p.local ? p.counts[e] : 0, scratch);
}

__device__ void hand_on(const Params& p, std::int64_t i) {
    if (p.weights_out)
        p.weights_out[i / p.slots][i % p.slots] =
            i < p.live_pairs() ? p.weights[i / p.slots][i % p.slots] : to_bf16(0.0f);
}

// Everything, for at most kOneBlock pairs and experts.
__global__ void __launch_bounds__(kOneBlock) few_pairs_kernel(Params p) {
    wait_for_inputs();
    __shared__ int expert[kOneBlock], counts[kOneBlock], scratch[kOneBlock / kWarp];
    const int i = static_cast<int>(threadIdx.x);
    const int pairs = static_cast<int>(p.n * p.slots);
    counts[i] = 0;
    expert[i] = i < p.live_pairs() ? p.expert_of(i) : -1;
    for (std::int64_t row = i; row < p.rows; row += kOneBlock)
        p.row_map[row] = -1;
    __syncthreads();
    if (expert[i] >= 0)
        atomicAdd(&counts[expert[i]], 1);
    __syncthreads();
    write_endpoints(p, counts[i], scratch);
    if (i >= pairs)
        return;
    hand_on(p, i);
    int row = -1;
    if (expert[i] >= 0) {
        row = p.start[expert[i]];
        for (int other = 0; other < i; ++other)
            row += expert[other] == expert[i];
        p.row_map[row] = i;
    }
    p.row_of[i] = row;
}

__global__ void __launch_bounds__(kThreads) clear_kernel(Params p) {
    wait_for_inputs();
    const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
    if (i < p.rows)
        p.row_map[i] = -1;
    if (i >= p.n * p.slots)
        return;
    p.row_of[i] = -1;
    hand_on(p, i);
}

__global__ void __launch_bounds__(kThreads) place_pairs_kernel(Params p) {
    wait_for_inputs();
    __shared__ int found[kWarps];
    const int e = static_cast<int>(blockIdx.x);
    const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = threadIdx.x % kWarp;
    const std::int64_t pairs = p.live_pairs();
    int row = p.start[e];
    if (row == p.end[e])
        return;
    for (std::int64_t first = 0; first < pairs && row < p.end[e]; first += kThreads) {
        const std::int64_t flat = first + threadIdx.x;
        const bool mine = flat < pairs && p.expert_of(flat) == e;
        const unsigned votes = __ballot_sync(kFullMask, mine);
        if (lane == 0)
            found[warp] = __popc(votes);
        __syncthreads();
        int before = __popc(votes & ((1u << lane) - 1)), all = 0;
        for (int other = 0; other < kWarps; ++other) {
            before += other < warp ? found[other] : 0;
            all += found[other];
        }
        if (mine) {
            p.row_map[row + before] = static_cast<std::int32_t>(flat);
            p.row_of[flat] = row + before;
        }
        row += all;
        __syncthreads();
    }
}

} // namespace

Status routing_indices(const ops::RoutingIndicesArgs& args, const Lane& lane) {
    constexpr auto kOp = "routing_indices";
    LR_TRY(require_dtype(kOp, DType::kBF16,
                         {{"weights", args.weights}, {"weights_out", args.weights_out}}));
    const Params params = {rows<const std::int32_t>(args.ids),
                           rows<const Bf16>(args.weights),
                           rows<Bf16>(args.weights_out),
                           values<const std::int32_t>(args.n_live),
                           values<std::int32_t>(args.counts),
                           values<std::int32_t>(args.start),
                           values<std::int32_t>(args.end),
                           values<std::int32_t>(args.row_map),
                           values<std::int32_t>(args.row_of),
                           args.ids.rows(),
                           args.row_map.rows(),
                           static_cast<int>(args.ids.shape[1]),
                           static_cast<int>(args.counts.rows()),
                           args.first_expert,
                           args.align};
    const auto local = static_cast<unsigned>(params.local);
    if (params.local > kOneBlock)
        return fail(Code::kUnsupported, "cuda: routing_indices: expected L <= {}, got {}",
                    kOneBlock, params.local);
    if (params.n == 0 || local == 0)
        return {};
    if (params.n * params.slots <= kOneBlock)
        return launch(kOp, few_pairs_kernel, {1, kOneBlock}, lane.stream, params);
    LR_TRY(launch(kOp, count_pairs_kernel, {local, kThreads}, lane.stream, params));
    LR_TRY(launch(kOp, clear_kernel,
                  {blocks_for(std::max(params.rows, params.n * params.slots), kThreads), kThreads},
                  lane.stream, params));
    LR_TRY(launch(kOp, scan_kernel, {1, kOneBlock}, lane.stream, params));
    return launch(kOp, place_pairs_kernel, {local, kThreads}, lane.stream, params);
}

} // namespace lr::cuda
