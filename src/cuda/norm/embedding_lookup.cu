// SPDX-License-Identifier: Apache-2.0
//
// Token ids become rows: one block copies one row with 16-byte loads. Reads and writes n*D*2 bytes.
#include "cuda/detail/launch.h"
#include "cuda/detail/math.h"
#include "cuda/norm/norm.h"

#include <cstdint>

namespace lr::cuda {
namespace {

using namespace detail;

constexpr int kThreads = 128;

struct Params {
    const std::int32_t* ids;
    const std::int32_t* n_live;
    Rows<const uint4> table;
    Rows<uint4> y;
    std::int64_t first, rows; // ids of this rank's share
    std::int64_t vectors;     // of a row
};

__global__ void __launch_bounds__(kThreads) embedding_lookup_kernel(Params p) {
    wait_for_inputs();
    const std::int64_t row = blockIdx.x;
    std::int64_t id = is_live(row, p.n_live) ? p.ids[row] - p.first : -1;
    if (id >= p.rows)
        id = -1; // another rank's
    for (std::int64_t i = threadIdx.x; i < p.vectors; i += kThreads)
        p.y[row][i] = id < 0 ? uint4{} : p.table[id][i];
}

} // namespace

Status embedding_lookup(const ops::EmbeddingLookupArgs& args, const Lane& lane) {
    if (args.table.parts.size() != 1)
        return fail(Code::kUnsupported,
                    "cuda: embedding_lookup: expected a table in one part, got {}",
                    args.table.parts.size());
    const ConstView table = args.table.parts[0].data;
    LR_TRY(require_dtype("embedding_lookup", DType::kBF16, {{"table", table}, {"y", args.y}}));
    LR_TRY(require_vectors("embedding_lookup", {{"table", table}, {"y", args.y}}));
    if (args.y.rows() == 0)
        return {};
    constexpr std::int64_t kElements = kVectorBytes / 2;
    const Params params = {values<const std::int32_t>(args.ids),
                           values<const std::int32_t>(args.n_live),
                           {values<const uint4>(table), table.row_stride / kElements},
                           {values<uint4>(args.y), args.y.row_stride / kElements},
                           args.first_row,
                           table.rows(),
                           args.y.shape[1] / kElements};
    return launch("embedding_lookup", embedding_lookup_kernel,
                  {static_cast<unsigned>(args.y.rows()), kThreads}, lane.stream, params);
}

} // namespace lr::cuda
