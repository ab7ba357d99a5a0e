// SPDX-License-Identifier: Apache-2.0
//
// One thread a row. Two rows may meet in one entry, which is half of an atomic word.
#include "cuda/detail/launch.h"
#include "cuda/detail/math.h"
#include "cuda/sampling/sampling.h"

#include <cstdint>

namespace lr::cuda {
namespace {

using namespace detail;

constexpr int kThreads = 128;

struct Params {
    const std::int32_t* ids;
    const std::int32_t* generated;
    const std::int32_t* sequence;
    const std::int32_t* slot;
    const std::int32_t* n_live;
    std::uint32_t* counts; // pairs of u16 entries
    std::int64_t n, vocabulary;
};

__device__ std::uint32_t counted(std::uint32_t entry, bool generated) {
    if (!generated)
        return entry | ops::kPromptToken;
    return (entry & ops::kMaxTokenCount) == ops::kMaxTokenCount ? entry : entry + 1;
}

__global__ void __launch_bounds__(kThreads) count_tokens_kernel(Params p) {
    wait_for_inputs();
    const std::int64_t row = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
    if (row >= p.n || !is_live(row, p.n_live) || p.sequence[row] < 0)
        return;
    const std::int32_t slot = p.slot[p.sequence[row]];
    if (slot < 0)
        return;
    const std::int64_t entry = slot * p.vocabulary + p.ids[row];
    const int shift = static_cast<int>(entry % 2) * 16;
    std::uint32_t* const word = p.counts + entry / 2;
    std::uint32_t seen = *word, before = 0;
    do {
        before = seen;
        const std::uint32_t now = counted(before >> shift & 0xFFFFu, p.generated[row] != 0);
        seen = atomicCAS(word, before, (before & ~(0xFFFFu << shift)) | now << shift);
    } while (seen != before);
}

} // namespace

Status count_tokens(const ops::CountTokensArgs& args, const Lane& lane) {
    const Params params = {values<const std::int32_t>(args.ids),
                           values<const std::int32_t>(args.generated),
                           values<const std::int32_t>(args.sequence),
                           values<const std::int32_t>(args.slot),
                           values<const std::int32_t>(args.n_live),
                           values<std::uint32_t>(args.counts),
                           args.ids.rows(),
                           args.counts.shape[1]};
    if (reinterpret_cast<std::uintptr_t>(args.counts.data) % 4 != 0)
        return fail(Code::kUnsupported, "cuda: count_tokens: expected counts on a 4-byte boundary");
    if (params.n == 0)
        return {};
    return launch("count_tokens", count_tokens_kernel, {blocks_for(params.n, kThreads), kThreads},
                  lane.stream, params);
}

} // namespace lr::cuda
