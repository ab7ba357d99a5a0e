// SPDX-License-Identifier: Apache-2.0
#include "cuda/attention/attention_params.h"

namespace lr::cuda {
namespace {

using namespace detail;

std::int64_t splits_of(const ops::AttentionArgs& args) {
    return (args.page_table.shape[1] + kSplitPages - 1) / kSplitPages;
}

template <int kDh> Status run_width(const AttentionParams& params, bool decode, const Lane& lane) {
    return decode ? attention_decode<kDh>(params, lane) : attention_prefill<kDh>(params, lane);
}

} // namespace

std::int64_t attention_scratch_bytes(const ops::AttentionArgs& args) {
    if (!args.workspace.empty())
        return 0;
    const std::int64_t heads = args.q.shape[1], dh = args.q.shape[2];
    return args.q.rows() * heads * splits_of(args) * (dh + 2) *
           static_cast<std::int64_t>(sizeof(float));
}

Status attention(const ops::AttentionArgs& args, const Lane& lane) {
    constexpr auto kOp = "attention";
    LR_TRY(require_model_precision(kOp, args));
    const auto named = {Named{"q", args.q}, Named{"k_cache", args.k_cache},
                        Named{"v_cache", args.v_cache}, Named{"o", args.o}};
    LR_TRY(require_dtype(kOp, DType::kBF16, named));
    LR_TRY(require_vectors(kOp, named));
    const bool decode = args.workspace.empty();
    AttentionParams params{};
    params.q = rows<const Bf16>(args.q);
    params.k_cache = values<const Bf16>(args.k_cache);
    params.v_cache = values<const Bf16>(args.v_cache);
    params.page_table = rows<const std::int32_t>(args.page_table);
    params.row_seq = values<const std::int32_t>(args.row_seq);
    params.positions = values<const std::int32_t>(args.positions);
    params.n_live = values<const std::int32_t>(args.n_live);
    params.o = rows<Bf16>(args.o);
    params.partial = reinterpret_cast<float*>(lane.scratch);
    params.n = args.q.rows();
    params.kv_heads = static_cast<int>(args.k_cache.shape[2]);
    params.group = static_cast<int>(args.q.shape[1] / args.k_cache.shape[2]);
    params.splits = static_cast<int>(splits_of(args));
    params.scale = args.scale;
    if (params.n == 0)
        return {};
    if (decode && attention_scratch_bytes(args) > lane.scratch_bytes)
        return fail(Code::kInternal, "cuda: attention: expected {} bytes of scratch, got {}",
                    attention_scratch_bytes(args), lane.scratch_bytes);
    switch (args.q.shape[2]) {
    case 16:
        return run_width<16>(params, decode, lane);
    case 32:
        return run_width<32>(params, decode, lane);
    case 64:
        return run_width<64>(params, decode, lane);
    case 128:
        return run_width<128>(params, decode, lane);
    case 256:
        return run_width<256>(params, decode, lane);
    default:
        return fail(Code::kUnsupported,
                    "cuda: attention: expected dh 16, 32, 64, 128 or 256, got {}", args.q.shape[2]);
    }
}

} // namespace lr::cuda
