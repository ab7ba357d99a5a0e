// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/kv_store.h"

#include "ops/cost.h"

namespace lr::ops {

Status check(const KvStoreArgs& args) {
    ShapeCheck check("kv_store");
    Dim n("n"), p("P"), hkv("Hkv"), dh("dh");
    check.match("k", args.k, {n, hkv, dh}, {DType::kBF16, DType::kF32});
    check.match("v", args.v, {n, hkv, dh}, {DType::kBF16, DType::kF32});
    check.match("kv_slot", args.kv_slot, {n}, {DType::kI64});
    check.match_optional("n_live", args.n_live, {1}, {DType::kI32});
    check.match("k_cache", args.k_cache, {p, kKvPage, hkv, dh}, {DType::kBF16, DType::kF32});
    check.match("v_cache", args.v_cache, {p, kKvPage, hkv, dh}, {args.k_cache.dtype});
    return check.status();
}

Cost cost(const KvStoreArgs& args) {
    Cost cost;
    cost.read_bytes = tensor_bytes(args.k) + tensor_bytes(args.v) + tensor_bytes(args.kv_slot) +
                      tensor_bytes(args.n_live);
    cost.write_bytes = dtype_bytes(args.k_cache.dtype, args.k.shape.count()) +
                       dtype_bytes(args.v_cache.dtype, args.v.shape.count());
    return cost;
}

} // namespace lr::ops
