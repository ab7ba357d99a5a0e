// SPDX-License-Identifier: Apache-2.0
//
// A thread carries 8 channels down a run of rows with the last inputs in registers. The stored
// inputs are replaced by a second kernel, after all runs have read them.
#include "cuda/detail/launch.h"
#include "cuda/detail/math.h"
#include "cuda/gdn/gdn.h"

#include <cstdint>

namespace lr::cuda {
namespace {

using namespace detail;

constexpr int kThreads = 128;
constexpr std::int64_t kRun = 16; // rows

struct Params {
    Rows<const Bf16> qkv;
    const std::int32_t* cu_seqlens;
    const std::int32_t* slot;
    const std::int32_t* mask;
    const std::int32_t* n_live;
    const Bf16* conv; // [C, 4]
    Bf16* conv_state; // [S, C, 3]
    Rows<Bf16> y;
    std::int64_t n, sequences, channels;
};

// The input `back` rows before row `row` of sequence b; before its first row the slot's, or zero.
__device__ Vec8 input(const Params& p, std::int64_t b, std::int64_t row, std::int64_t c) {
    const std::int64_t before = p.cu_seqlens[b] - row; // > 0: in the state
    if (before <= 0)
        return load8(p.qkv[row] + c);
    Vec8 x{};
    if (p.mask[b] != 0)
        for (int i = 0; i < 8; ++i)
            x.v[i] = to_float(p.conv_state[(p.slot[b] * p.channels + c + i) * 3 + 3 - before]);
    return x;
}

// The sequence that holds a row: the last one that begins at or before it and has rows.
__device__ std::int64_t sequence_of(const Params& p, std::int64_t row) {
    std::int64_t low = 0, high = p.sequences; // cu[low] <= row < cu[high]
    while (high - low > 1) {
        const std::int64_t middle = (low + high) / 2;
        (p.cu_seqlens[middle] <= row ? low : high) = middle;
    }
    return low;
}

__global__ void __launch_bounds__(kThreads) causal_conv_kernel(Params p) {
    wait_for_inputs();
    const std::int64_t c = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) * 8;
    if (c >= p.channels)
        return;
    float taps[4][8];
    for (int i = 0; i < 8; ++i)
        for (int tap = 0; tap < 4; ++tap)
            taps[tap][i] = to_float(p.conv[(c + i) * 4 + tap]);
    const std::int64_t covered = p.cu_seqlens[p.sequences];
    Vec8 x[4];
    std::int64_t held = -1; // sequence whose inputs x holds
    for (std::int64_t row = blockIdx.y * kRun; row < min(p.n, (blockIdx.y + 1) * kRun); ++row) {
        const std::int64_t b = row < covered && is_live(row, p.n_live) ? sequence_of(p, row) : -1;
        if (b < 0 || p.slot[b] < 0) {
            store8(p.y[row] + c, Vec8{});
            held = -1;
            continue;
        }
        if (b != held)
            for (int age = 0; age < 3; ++age)
                x[age + 1] = input(p, b, row - 3 + age, c);
        held = b;
        x[0] = x[1];
        x[1] = x[2];
        x[2] = x[3];
        x[3] = load8(p.qkv[row] + c);
        Vec8 y;
        for (int i = 0; i < 8; ++i) {
            float sum = taps[0][i] * x[0].v[i];
            sum += taps[1][i] * x[1].v[i];
            sum += taps[2][i] * x[2].v[i];
            sum += taps[3][i] * x[3].v[i];
            y.v[i] = silu(sum);
        }
        store8(p.y[row] + c, y);
    }
}

__global__ void __launch_bounds__(kThreads) conv_state_kernel(Params p) {
    wait_for_inputs();
    const std::int64_t c = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
    const std::int64_t b = blockIdx.y;
    if (c >= p.channels || p.slot[b] < 0)
        return;
    const std::int64_t live = p.n_live ? min(p.n, std::int64_t{*p.n_live}) : p.n;
    const std::int64_t begin = p.cu_seqlens[b], end = min(live, std::int64_t{p.cu_seqlens[b + 1]});
    if (begin >= end)
        return;
    Bf16* const state = p.conv_state + (p.slot[b] * p.channels + c) * 3;
    Bf16 last[3];
    for (int age = 0; age < 3; ++age) {
        const std::int64_t row = end - 3 + age;
        if (row >= begin)
            last[age] = p.qkv[row][c];
        else
            last[age] = p.mask[b] != 0 ? state[3 - (begin - row)] : to_bf16(0.0f);
    }
    for (int age = 0; age < 3; ++age)
        state[age] = last[age];
}

} // namespace

Status causal_conv(const ops::CausalConvArgs& args, const Lane& lane) {
    constexpr auto kOp = "causal_conv";
    const ConstView conv = args.conv.parts[0].data;
    LR_TRY(require_dtype(
        kOp, DType::kBF16,
        {{"qkv", args.qkv}, {"conv", conv}, {"conv_state", args.conv_state}, {"y", args.y}}));
    LR_TRY(require_vectors(kOp, {{"qkv", args.qkv}, {"y", args.y}}));
    const Params params = {rows<const Bf16>(args.qkv),
                           values<const std::int32_t>(args.cu_seqlens),
                           values<const std::int32_t>(args.slot),
                           values<const std::int32_t>(args.mask),
                           values<const std::int32_t>(args.n_live),
                           values<const Bf16>(conv),
                           values<Bf16>(args.conv_state),
                           rows<Bf16>(args.y),
                           args.y.rows(),
                           args.slot.shape[0],
                           args.y.shape[1]};
    if (params.n == 0 || params.sequences == 0)
        return {};
    LR_TRY(
        launch(kOp, causal_conv_kernel,
               {{blocks_for(params.channels / 8, kThreads), blocks_for(params.n, kRun)}, kThreads},
               lane.stream, params));
    return launch(kOp, conv_state_kernel,
                  {{blocks_for(params.channels, kThreads), static_cast<unsigned>(params.sequences)},
                   kThreads},
                  lane.stream, params);
}

} // namespace lr::cuda
