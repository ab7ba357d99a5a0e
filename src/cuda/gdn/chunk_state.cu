// SPDX-License-Identifier: Apache-2.0
//
// One block walks the chunks of one sequence and value head for a slice of the state's rows: rows
// of S depend on nothing but themselves. S stays in shared memory in f32 from chunk to chunk.
#include "cuda/gdn/chunk.h"
#include "cuda/gdn/gdn.h"

namespace lr::cuda {
namespace {

using namespace detail;

struct Params {
    Rows<const Bf16> k, w, u;
    Rows<const float> g;
    const std::int32_t* chunk_row;
    const std::int32_t* chunk_len;
    const std::int32_t* seq_chunk;
    const std::int32_t* slot;
    const std::int32_t* mask; // or null
    const std::int32_t* n_live;
    std::byte* ssm_state; // [S, Hv, dv, dk]
    bool state_is_f32;
    Bf16* h; // [NC, Hv, dv, dk]
    Rows<Bf16> v_new;
    std::int64_t n, sequences;
    int heads, group, dk, dv, slice; // slice: rows of S of a block
};

// Where the block's slice of the state lies in a [*, Hv, dv, dk] tensor.
__device__ std::int64_t slice_at(const Params& p, std::int64_t index, int head, int first) {
    return ((index * p.heads + head) * p.dv + first) * p.dk;
}

class Walk {
  public:
    __device__ Walk(const Params& p, int head, int first, std::byte* shared)
        : p_(p), head_(head), first_(first), pieces_{shared},
          state_(pieces_.take<float>(p.slice * p.dk)), rounded_(pieces_.tile(p.slice, p.dk)),
          w_(pieces_.tile(kChunk, p.dk)), keys_(pieces_.tile(kChunk, p.dk)),
          values_(pieces_.tile(p.slice, kChunk)), g_(pieces_.take<float>(kChunk)) {}

    __device__ void start(std::int64_t slot, bool stored) {
        const std::int64_t at = slice_at(p_, slot, head_, first_);
        for (int i = threadIdx.x; i < p_.slice * p_.dk; i += kChunkThreads)
            state_[i] = !stored ? 0.0f
                        : p_.state_is_f32
                            ? reinterpret_cast<const float*>(p_.ssm_state)[at + i]
                            : to_float(reinterpret_cast<const Bf16*>(p_.ssm_state)[at + i]);
    }

    __device__ void finish(std::int64_t slot) {
        __syncthreads();
        const std::int64_t at = slice_at(p_, slot, head_, first_);
        for (int i = threadIdx.x; i < p_.slice * p_.dk; i += kChunkThreads) {
            if (p_.state_is_f32)
                reinterpret_cast<float*>(p_.ssm_state)[at + i] = state_[i];
            else
                reinterpret_cast<Bf16*>(p_.ssm_state)[at + i] = to_bf16(state_[i]);
        }
    }

    __device__ void step(std::int64_t c, Chunk chunk) {
        __syncthreads(); // the last chunk's operands have been read
        load_rows(w_, p_.w, chunk, std::int64_t{head_} * p_.dk, p_.dk);
        load_rows(keys_, p_.k, chunk, std::int64_t{head_ / p_.group} * p_.dk, p_.dk);
        load_scalars(g_, p_.g, chunk, head_);
        round_state(c);
        __syncthreads();
        new_values(chunk);
        __syncthreads();
        advance(chunk);
    }

  private:
    // The state at the chunk's start: h, and the right operand of the product with w.
    __device__ void round_state(std::int64_t c) {
        Bf16* const h = p_.h + slice_at(p_, c, head_, first_);
        for (int i = threadIdx.x * 8; i < p_.slice * p_.dk; i += kChunkThreads * 8) {
            Vec8 s;
            for (int e = 0; e < 8; ++e)
                s.v[e] = state_[i + e];
            store8(h + i, s);
            store8(rounded_.row(i / p_.dk) + i % p_.dk, s);
        }
    }

    // v_new_i = u_i - S w_i, and its part in the update: values_ [slice, 64].
    __device__ void new_values(Chunk chunk) {
        const int row = static_cast<int>(threadIdx.x) / kWarp * 16;
        const std::int64_t column0 = std::int64_t{head_} * p_.dv + first_;
        const float last = g_[chunk.length - 1];
        for (int column = 0; column < p_.slice; column += 16) {
            float c[2][4] = {};
            multiply16<Right::kByColumn>(c, w_, row, rounded_, column, p_.dk);
            for_results(c, row, column, [&](int i, int j, float low, float high) {
                float weighed[2] = {};
                if (i < chunk.length) {
                    const std::uint32_t u =
                        *reinterpret_cast<const std::uint32_t*>(p_.u[chunk.row + i] + column0 + j);
                    const float v0 = bf16_low(u) - low, v1 = bf16_high(u) - high;
                    *reinterpret_cast<std::uint32_t*>(p_.v_new[chunk.row + i] + column0 + j) =
                        pack_bf16(v0, v1);
                    const float decay = expf(last - g_[i]);
                    weighed[0] = v0 * decay;
                    weighed[1] = v1 * decay;
                }
                values_.row(j)[i] = to_bf16(weighed[0]);
                values_.row(j + 1)[i] = to_bf16(weighed[1]);
            });
        }
    }

    // S <- exp(G_last) S + values kn.
    __device__ void advance(Chunk chunk) {
        const float decay = expf(g_[chunk.length - 1]);
        const int columns = p_.dk / 16, tiles = p_.slice / 16 * columns;
        for (int tile = threadIdx.x / kWarp; tile < tiles; tile += kChunkThreads / kWarp) {
            const int row = tile / columns * 16, column = tile % columns * 16;
            float c[2][4] = {};
            multiply16<Right::kByRow>(c, values_, row, keys_, column, kChunk);
            for_results(c, row, column, [&](int i, int j, float low, float high) {
                float* const s = state_ + i * p_.dk + j;
                s[0] = s[0] * decay + low;
                s[1] = s[1] * decay + high;
            });
        }
    }

    const Params& p_;
    int head_, first_;
    Pieces pieces_;
    float* state_; // [slice, dk]
    Tile rounded_; // the same in bf16
    Tile w_, keys_;
    Tile values_;
    float* g_;
};

// The chunks of a sequence without a slot.
__device__ void zero_chunk(const Params& p, std::int64_t c, int head, int first) {
    const Chunk chunk = chunk_at(p.chunk_row, p.chunk_len, c);
    Bf16* const h = p.h + slice_at(p, c, head, first);
    for (int i = threadIdx.x * 8; i < p.slice * p.dk; i += kChunkThreads * 8)
        store8(h + i, Vec8{});
    const int vectors = p.slice / 8;
    for (int i = threadIdx.x; i < chunk.length * vectors; i += kChunkThreads)
        store8(p.v_new[chunk.row + i / vectors] + std::int64_t{head} * p.dv + first +
                   i % vectors * 8,
               Vec8{});
}

__global__ void __launch_bounds__(kChunkThreads) chunk_state_kernel(Params p) {
    wait_for_inputs();
    extern __shared__ __align__(16) std::byte shared[];
    const int slices = p.dv / p.slice;
    const int head = static_cast<int>(blockIdx.x) / slices;
    const int first = static_cast<int>(blockIdx.x) % slices * p.slice;
    const std::int64_t b = blockIdx.y;
    if (b == p.sequences)
        return zero_tail(p.v_new, p.n_live, p.n, std::int64_t{head} * p.dv + first, p.slice);
    const std::int64_t begin = p.seq_chunk[b], end = p.seq_chunk[b + 1];
    const std::int64_t slot = p.slot[b];
    if (begin == end)
        return;
    if (slot < 0) {
        for (std::int64_t c = begin; c < end; ++c)
            zero_chunk(p, c, head, first);
        return;
    }
    Walk walk(p, head, first, shared);
    walk.start(slot, !p.mask || p.mask[b] != 0);
    for (std::int64_t c = begin; c < end; ++c)
        walk.step(c, chunk_at(p.chunk_row, p.chunk_len, c));
    walk.finish(slot);
}

} // namespace

Status chunk_state(const ops::ChunkStateArgs& args, const Lane& lane) {
    constexpr auto kOp = "chunk_state";
    LR_TRY(require_model_precision(kOp, args));
    const auto named = {Named{"k", args.k}, Named{"w", args.w}, Named{"u", args.u},
                        Named{"h", args.h}, Named{"v_new", args.v_new}};
    LR_TRY(require_dtype(kOp, DType::kBF16, named));
    LR_TRY(require_vectors(kOp, named));
    Params params{};
    params.k = rows<const Bf16>(args.k);
    params.w = rows<const Bf16>(args.w);
    params.u = rows<const Bf16>(args.u);
    params.g = rows<const float>(args.g_cumsum);
    params.chunk_row = values<const std::int32_t>(args.chunk_row);
    params.chunk_len = values<const std::int32_t>(args.chunk_len);
    params.seq_chunk = values<const std::int32_t>(args.seq_chunk);
    params.slot = values<const std::int32_t>(args.slot);
    params.mask = values<const std::int32_t>(args.mask);
    params.n_live = values<const std::int32_t>(args.n_live);
    params.ssm_state = args.ssm_state.data;
    params.state_is_f32 = args.ssm_state.dtype == DType::kF32;
    params.h = values<Bf16>(args.h);
    params.v_new = rows<Bf16>(args.v_new);
    params.n = args.v_new.rows();
    params.sequences = args.slot.rows();
    params.heads = static_cast<int>(args.u.shape[1]);
    params.group = static_cast<int>(args.u.shape[1] / args.k.shape[1]);
    params.dk = static_cast<int>(args.k.shape[2]);
    params.dv = static_cast<int>(args.u.shape[2]);
    params.slice = params.dv % 32 == 0 ? 32 : 16;
    const std::size_t bytes = static_cast<std::size_t>(params.slice * params.dk) * sizeof(float) +
                              tile_bytes(params.slice, params.dk) +
                              2 * tile_bytes(kChunk, params.dk) + tile_bytes(params.slice, kChunk) +
                              kChunk * sizeof(float);
    return launch(kOp, chunk_state_kernel,
                  {{static_cast<unsigned>(params.heads * (params.dv / params.slice)),
                    static_cast<unsigned>(params.sequences) + 1},
                   kChunkThreads,
                   bytes},
                  lane.stream, params);
}

} // namespace lr::cuda
