// SPDX-License-Identifier: Apache-2.0
//
// One thread a block of 16 channels: 32 bytes in, 8 bytes of codes and one scale out.
#include "cuda/detail/launch.h"
#include "cuda/quant/codes.h"
#include "cuda/quant/quant.h"

#include <cstdint>

namespace lr::cuda {
namespace {

using namespace detail;

constexpr int kThreads = 256;

struct Params {
    Rows<const Bf16> x;
    std::uint8_t* q; // rows of K/2 bytes
    std::int64_t q_bytes;
    Rows<std::uint8_t> scale;
    LiveRows rows;
    std::int64_t n, blocks;
    float g;
};

__global__ void __launch_bounds__(kThreads) nvfp4_quant_kernel(Params p) {
    wait_for_inputs();
    const std::int64_t item = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
    const std::int64_t row = item / p.blocks, block = item % p.blocks;
    if (row >= p.n)
        return;
    Nvfp4Block out{};
    const bool live = p.rows.live(row);
    if (!live && !p.rows.zeroes())
        return;
    if (live) {
        const Bf16* const from = p.x[row] + block * numerics::kNvfp4Block;
        const Vec8 x[2] = {load8(from), load8(from + 8)};
        out = nvfp4_block(x, p.g);
    }
    *reinterpret_cast<uint2*>(p.q + row * p.q_bytes + block * 8) = {out.codes[0], out.codes[1]};
    p.scale[row][block] = out.sf;
}

} // namespace

Status nvfp4_quant(const ops::Nvfp4QuantArgs& args, const Lane& lane) {
    return nvfp4_quant(args, {}, {}, lane);
}

Status nvfp4_quant(const ops::Nvfp4QuantArgs& args, ConstView start, ConstView end,
                   const Lane& lane) {
    constexpr auto kOp = "nvfp4_quant";
    LR_TRY(require_dtype(kOp, DType::kBF16, {{"x", args.x}}));
    LR_TRY(require_vectors(kOp, {{"x", args.x}}));
    const Params params = {rows<const Bf16>(args.x),
                           values<std::uint8_t>(args.q),
                           dtype_bytes(args.q.dtype, args.q.row_stride),
                           rows<std::uint8_t>(args.scale),
                           {values<const std::int32_t>(args.n_live),
                            values<const std::int32_t>(start), values<const std::int32_t>(end),
                            static_cast<int>(start.shape[0])},
                           args.x.rows(),
                           args.scale.shape[1],
                           args.encode_scale};
    if (params.n == 0)
        return {};
    return launch(kOp, nvfp4_quant_kernel,
                  {blocks_for(params.n * params.blocks, kThreads), kThreads}, lane.stream, params);
}

} // namespace lr::cuda
