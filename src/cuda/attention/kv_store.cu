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
    wait_for_inputs();
    const std::int64_t row = blockIdx.x;
    const std::int64_t slot = is_live(row, p.n_live) ? p.kv_slot[row] : -1;
    if (slot < 0)
        return;
    const int vectors = static_cast<int>(p.width / 8);
    const auto* const k = reinterpret_cast<const uint4*>(p.k[row]);
    const auto* const v = reinterpret_cast<const uint4*>(p.v[row]);
    auto* const k_out = reinterpret_cast<uint4*>(p.k_cache + slot * p.width);
    auto* const v_out = reinterpret_cast<uint4*>(p.v_cache + slot * p.width);
    for (int i = static_cast<int>(threadIdx.x); i < vectors; i += kThreads) {
        k_out[i] = k[i];
        v_out[i] = v[i];
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
    return launch(kOp, kv_store_kernel, {static_cast<unsigned>(args.k.rows()), kThreads},
                  lane.stream, params);
}

} // namespace lr::cuda
