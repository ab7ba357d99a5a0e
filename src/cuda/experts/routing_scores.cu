// SPDX-License-Identifier: Apache-2.0
//
// One warp a token, an expert in every 32nd lane register: K times the best of those left.
#include "cuda/detail/launch.h"
#include "cuda/detail/math.h"
#include "cuda/experts/experts.h"

#include <cstdint>

namespace lr::cuda {
namespace {

using namespace detail;

constexpr int kWarps = 4;
constexpr int kMaxSlots = kWarp; // K
constexpr int kMaxExperts = 1024;

struct Params {
    const std::byte* logits;
    std::int64_t stride;
    bool f32;
    const std::int32_t* n_live;
    Rows<std::int32_t> ids;
    Rows<Bf16> weights;
    std::int64_t n;
    int experts, slots; // E, K
};

__device__ float logit(const Params& p, std::int64_t token, int e) {
    return p.f32 ? reinterpret_cast<const float*>(p.logits)[token * p.stride + e]
                 : to_float(reinterpret_cast<const Bf16*>(p.logits)[token * p.stride + e]);
}

// A number that is larger for what ranks before: larger logits, then lower indices; a NaN behind
// every number (-inf included). 0: taken.
__device__ unsigned long long rank_key(float x, int e) {
    const float clean = x + 0.0f; // -0 becomes 0
    const std::uint32_t bits = __float_as_uint(clean);
    const std::uint32_t ordered = x != x ? 1u : (bits >> 31 ? ~bits : bits | 0x8000'0000u);
    return static_cast<unsigned long long>(ordered) << 32 | static_cast<std::uint32_t>(~e);
}

// kPerLane: experts of a lane.
template <int kPerLane> __global__ void __launch_bounds__(kWarps* kWarp)
    routing_scores_kernel(Params p) {
    wait_for_inputs();
    const std::int64_t token = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarp;
    const int lane = threadIdx.x % kWarp;
    if (token >= p.n)
        return;
    if (!is_live(token, p.n_live)) {
        if (lane < p.slots) {
            p.ids[token][lane] = -1;
            p.weights[token][lane] = to_bf16(0.0f);
        }
        return;
    }
    unsigned long long key[kPerLane];
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
        const int e = i * kWarp + lane;
        key[i] = e < p.experts ? rank_key(logit(p, token, e), e) : 0;
    }
    int mine = 0; // the choice of slot `lane`
    for (int slot = 0; slot < p.slots; ++slot) {
        unsigned long long best = 0;
#pragma unroll
        for (int i = 0; i < kPerLane; ++i)
            best = max(best, key[i]);
#pragma unroll
        for (int step = kWarp / 2; step > 0; step /= 2)
            best = max(best, __shfl_xor_sync(kFullMask, best, step));
#pragma unroll
        for (int i = 0; i < kPerLane; ++i)
            key[i] = key[i] == best ? 0 : key[i];
        if (lane == slot)
            mine = static_cast<int>(~static_cast<std::uint32_t>(best));
    }
    const float first = logit(p, token, __shfl_sync(kFullMask, mine, 0));
    const float value = lane < p.slots ? expf(logit(p, token, mine) - first) : 0.0f;
    float sum = 0;
    for (int slot = 0; slot < p.slots; ++slot)
        sum += __shfl_sync(kFullMask, value, slot);
    if (lane < p.slots) {
        p.ids[token][lane] = mine;
        p.weights[token][lane] = to_bf16(value / sum);
    }
}

} // namespace

Status routing_scores(const ops::RoutingScoresArgs& args, const Lane& lane) {
    constexpr auto kOp = "routing_scores";
    LR_TRY(require_model_precision(kOp, args));
    LR_TRY(require_dtype(kOp, DType::kBF16, {{"weights", args.weights}}));
    const Params params = {args.logits.data,
                           args.logits.row_stride,
                           args.logits.dtype == DType::kF32,
                           values<const std::int32_t>(args.n_live),
                           rows<std::int32_t>(args.ids),
                           rows<Bf16>(args.weights),
                           args.ids.rows(),
                           static_cast<int>(args.logits.shape[1]),
                           static_cast<int>(args.ids.shape[1])};
    if (params.experts > kMaxExperts || params.slots > kMaxSlots)
        return fail(Code::kUnsupported,
                    "cuda: routing_scores: expected E <= {} and K <= {}, got {} and {}",
                    kMaxExperts, kMaxSlots, params.experts, params.slots);
    if (params.n == 0)
        return {};
    const LaunchShape shape = {blocks_for(params.n, kWarps), kWarps * kWarp};
    if (params.experts <= 8 * kWarp)
        return launch(kOp, routing_scores_kernel<8>, shape, lane.stream, params);
    if (params.experts <= 16 * kWarp)
        return launch(kOp, routing_scores_kernel<16>, shape, lane.stream, params);
    return launch(kOp, routing_scores_kernel<kMaxExperts / kWarp>, shape, lane.stream, params);
}

} // namespace lr::cuda
