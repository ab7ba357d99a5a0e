// SPDX-License-Identifier: Apache-2.0
//
// One block a row: its key and value in 16-byte vectors.
#include "cuda/attention/attention.h"
#include "cuda/detail/launch.h"
#include "cuda/detail/math.h"

#include <cstdint>

namespace lr::cuda {
namespace {

using namespace detail;

constexpr int kThreads = 128;

struct Params {
    Rows<const Bf16> k, v;
    const std::int64_t* kv_slot;
    const std::int32_t* n_live;
    Bf16* k_cache; // [64P, Hkv*dh]
    Bf16* v_cache;
    std::int64_t width; // Hkv*dh
};

__global__ void __launch_bounds__(kThreads) kv_store_kernel(Params p) {
    const std::int64_t row = blockIdx.x;
    const std::int64_t slot = is_live(row, p.n_live) ? p.kv_slot[row] : -1;
    if (slot < 0)
        return;
    for (std::int64_t c = threadIdx.x * 8; c < p.width; c += kThreads * 8) {
        *reinterpret_cast<uint4*>(p.k_cache + slot * p.width + c) =
            *reinterpret_cast<const uint4*>(p.k[row] + c);
        *reinterpret_cast<uint4*>(p.v_cache + slot * p.width + c) =
            *reinterpret_cast<const uint4*>(p.v[row] + c);
    }
}

} // namespace

Status kv_store(const ops::KvStoreArgs& args, const Lane& lane) {
    constexpr auto kOp = "kv_store";
    const auto named = {Named{"k", args.k}, Named{"v", args.v}, Named{"k_cache", args.k_cache},
                        Named{"v_cache", args.v_cache}};
    LR_TRY(require_dtype(kOp, DType::kBF16, named));
    LR_TRY(require_vectors(kOp, named));
    if (args.k.rows() == 0)
        return {};
    const Params params = {rows<const Bf16>(args.k),
                           rows<const Bf16>(args.v),
                           values<const std::int64_t>(args.kv_slot),
                           values<const std::int32_t>(args.n_live),
                           values<Bf16>(args.k_cache),
                           values<Bf16>(args.v_cache),
                           args.k.shape.row_count()};
    return launch(kOp, kv_store_kernel, {static_cast<unsigned>(args.k.rows()), kThreads}, lane.stream,
                  params);
}

} // namespace lr::cuda
