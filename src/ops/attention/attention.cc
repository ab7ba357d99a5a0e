// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/attention.h"

#include "ops/cost.h"

#include <algorithm>

namespace lr::ops {

Status check(const AttentionArgs& args) {
    ShapeCheck check("attention");
    Dim n("n"), p("P"), b("B"), mp("MP"), hq("Hq"), hkv("Hkv"), dh("dh");
    check.match("q", args.q, {n, hq, dh}, {DType::kBF16, DType::kF32});
    check.match("k_cache", args.k_cache, {p, kKvPage, hkv, dh}, {DType::kBF16, DType::kF32});
    check.match("v_cache", args.v_cache, {p, kKvPage, hkv, dh}, {args.k_cache.dtype});
    check.match("page_table", args.page_table, {b, mp}, {DType::kI32});
    check.match("row_seq", args.row_seq, {n}, {DType::kI32});
    check.match("positions", args.positions, {n}, {DType::kI32});
    check.match_optional("n_live", args.n_live, {1}, {DType::kI32});
    if (!check.status().ok())
        return check.status();
    check.match("o", args.o, {n, hq.value() * dh.value()}, {DType::kBF16, DType::kF32});
    check.require(hkv.value() > 0 && hq.value() % hkv.value() == 0,
                  fmt::format("q dim 1: expected Hq to be a multiple of Hkv={}, got {}",
                              hkv.value(), hq.value()));
    check.require(args.scale > 0,
                  fmt::format("scale: expected a positive number, got {}", args.scale));
    return check.status();
}

Cost cost(const AttentionArgs& args) {
    const Shape& cache = args.k_cache.shape;
    const std::int64_t pages = std::min(cache[0], args.page_table.shape.count());
    const std::int64_t context = kKvPage * args.page_table.shape[1];
    const std::int64_t kv_elements = pages * cache.row_count();
    Cost cost;
    cost.read_bytes = tensor_bytes(args.q) + tensor_bytes(args.page_table) +
                      tensor_bytes(args.row_seq) + tensor_bytes(args.positions) +
                      tensor_bytes(args.n_live) + dtype_bytes(args.k_cache.dtype, kv_elements) +
                      dtype_bytes(args.v_cache.dtype, kv_elements);
    cost.write_bytes = tensor_bytes(args.o);
    cost.flops = 4 * args.q.shape.count() * context;
    return cost;
}

} // namespace lr::ops
