// SPDX-License-Identifier: Apache-2.0
//
// One thread an output element of a row: a convolved channel of q | k | v, or a copied column of
// z, b or a.
#include "cuda/detail/launch.h"
#include "cuda/detail/math.h"
#include "cuda/gdn/gdn.h"

#include <cstdint>

namespace lr::cuda {
namespace {

using namespace detail;

constexpr int kThreads = 256;

struct Params {
    Rows<const Bf16> qkvz, ba;
    const std::int32_t* slot;
    const std::int32_t* n_live;
    const Bf16* conv; // [C, 4]
    Bf16* conv_state; // [S, C, 3]
    Rows<Bf16> q, k, v, z, b, a;
    int qk, channels, z_width, heads; // Hk*dk; C; Hv*dv; Hv
};

__device__ void store_channel(const Params& p, std::int64_t row, int c, Bf16 value) {
    if (c < p.qk)
        p.q[row][c] = value;
    else if (c < 2 * p.qk)
        p.k[row][c - p.qk] = value;
    else
        p.v[row][c - 2 * p.qk] = value;
}

// The columns behind the channels: z, b, a.
__device__ void copy_column(const Params& p, std::int64_t row, int c, bool live) {
    const Bf16 none = to_bf16(0.0f);
    if (c < p.z_width)
        p.z[row][c] = live ? p.qkvz[row][p.channels + c] : none;
    else if (c < p.z_width + p.heads)
        p.b[row][c - p.z_width] = live ? p.ba[row][c - p.z_width] : none;
    else if (c < p.z_width + 2 * p.heads)
        p.a[row][c - p.z_width - p.heads] = live ? p.ba[row][c - p.z_width] : none;
}

__global__ void __launch_bounds__(kThreads) unpack_conv_kernel(Params p) {
    wait_for_inputs();
    const std::int64_t row = blockIdx.y;
    const int c = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
    const std::int64_t slot = is_live(row, p.n_live) ? p.slot[row] : -1;
    if (c >= p.channels)
        return copy_column(p, row, c - p.channels, slot >= 0);
    if (slot < 0)
        return store_channel(p, row, c, to_bf16(0.0f));
    Bf16* const state = p.conv_state + (slot * p.channels + c) * 3;
    const Bf16 x[4] = {state[0], state[1], state[2], p.qkvz[row][c]};
    float sum = 0;
    for (int tap = 0; tap < 4; ++tap) {
        const float product = to_float(p.conv[c * 4 + tap]) * to_float(x[tap]);
        sum = tap == 0 ? product : sum + product;
    }
    for (int age = 0; age < 3; ++age)
        state[age] = x[age + 1];
    store_channel(p, row, c, to_bf16(silu(sum)));
}

} // namespace

Status unpack_conv(const ops::UnpackConvArgs& args, const Lane& lane) {
    constexpr auto kOp = "unpack_conv";
    const ConstView conv = args.conv.parts[0].data;
    LR_TRY(require_dtype(kOp, DType::kBF16,
                         {{"qkvz", args.qkvz},
                          {"ba", args.ba},
                          {"conv", conv},
                          {"conv_state", args.conv_state},
                          {"q", args.q}}));
    if (args.q.rows() == 0)
        return {};
    Params params{};
    params.qkvz = rows<const Bf16>(args.qkvz);
    params.ba = rows<const Bf16>(args.ba);
    params.slot = values<const std::int32_t>(args.slot);
    params.n_live = values<const std::int32_t>(args.n_live);
    params.conv = values<const Bf16>(conv);
    params.conv_state = values<Bf16>(args.conv_state);
    params.q = rows<Bf16>(args.q);
    params.k = rows<Bf16>(args.k);
    params.v = rows<Bf16>(args.v);
    params.z = rows<Bf16>(args.z);
    params.b = rows<Bf16>(args.b);
    params.a = rows<Bf16>(args.a);
    params.qk = static_cast<int>(args.q.shape.row_count());
    params.channels = static_cast<int>(args.conv_state.shape[1]);
    params.z_width = static_cast<int>(args.z.shape.row_count());
    params.heads = static_cast<int>(args.b.shape[1]);
    const unsigned blocks =
        blocks_for(params.channels + params.z_width + 2 * params.heads, kThreads);
    return launch(kOp, unpack_conv_kernel,
                  {{blocks, static_cast<unsigned>(args.q.rows())}, kThreads}, lane.stream, params);
}

} // namespace lr::cuda
