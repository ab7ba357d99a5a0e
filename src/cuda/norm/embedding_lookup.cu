// SPDX-License-Identifier: Apache-2.0
//
// Token ids become rows: one block copies one row with 16-byte loads. Reads and writes n*D*2 bytes.
#include "cuda/detail/launch.h"
#include "cuda/norm/norm.h"

#include <cstdint>

namespace lr::cuda {
namespace {

constexpr int kThreads = 128;
constexpr std::int64_t kBytesPerLoad = sizeof(uint4);

struct Params {
    const std::int32_t* ids;
    const std::int32_t* n_live; // null: every row is live
    const std::byte* table;
    std::byte* y;
    std::int64_t table_stride, y_stride; // bytes
    std::int64_t row_bytes;
};

__global__ void __launch_bounds__(kThreads) embedding_lookup_kernel(Params p) {
    const std::int64_t row = blockIdx.x;
    const bool live = !p.n_live || row < *p.n_live;
    const std::int32_t id = live ? p.ids[row] : -1; // ids of padding rows are not read
    std::byte* const y = p.y + row * p.y_stride;
    const std::byte* const source = p.table + (id < 0 ? 0 : id) * p.table_stride;
    for (std::int64_t at = threadIdx.x * kBytesPerLoad; at < p.row_bytes;
         at += kThreads * kBytesPerLoad)
        *reinterpret_cast<uint4*>(y + at) =
            id < 0 ? uint4{} : *reinterpret_cast<const uint4*>(source + at);
}

bool aligned(const void* pointer, std::int64_t stride_bytes) {
    return reinterpret_cast<std::uintptr_t>(pointer) % kBytesPerLoad == 0 &&
           stride_bytes % kBytesPerLoad == 0;
}

} // namespace

Status embedding_lookup(const ops::EmbeddingLookupArgs& args, Stream stream) {
    if (args.y.dtype != DType::kBF16 || args.table.dtype != DType::kBF16 ||
        args.table.parts.size() != 1)
        return fail(Code::kUnsupported,
                    "cuda: embedding_lookup: expected bf16 rows of a bf16 table in one part, got "
                    "{} rows of a {} table in {}",
                    dtype_name(args.y.dtype), dtype_name(args.table.dtype),
                    args.table.parts.size());
    const ConstView table = args.table.parts[0].data;
    const Params params = {args.ids.as<std::int32_t>(),
                           args.n_live.as<std::int32_t>(),
                           table.data,
                           args.y.data,
                           dtype_bytes(table.dtype, table.row_stride),
                           dtype_bytes(args.y.dtype, args.y.row_stride),
                           dtype_bytes(args.y.dtype, args.y.shape.row_count())};
    if (!aligned(table.data, params.table_stride) || !aligned(args.y.data, params.y_stride) ||
        params.row_bytes % kBytesPerLoad != 0)
        return fail(Code::kUnsupported,
                    "cuda: embedding_lookup: expected 16-byte aligned rows of "
                    "D % 8 == 0, got D={}",
                    args.y.shape.row_count());
    if (args.y.rows() == 0)
        return {};
    return detail::launch("embedding_lookup", embedding_lookup_kernel,
                          {static_cast<unsigned>(args.y.rows()), kThreads}, stream, params);
}

} // namespace lr::cuda
