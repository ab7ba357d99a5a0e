// SPDX-License-Identifier: Apache-2.0
#if defined(__x86_64__)
#if !defined(__clang__)
// GCC 12 warns of its own intrinsics, which leave a masked-out operand undefined.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include "cpu/kernels/bf16_dot.h"
#include "cpu/kernels/sets.h"
#include "cpu/kernels/tile.h"
#include "numerics/e4m3.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <immintrin.h>

#define LR_KERNEL                                                                                  \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512bf16,avx2,fma")))
#define LR_TARGET LR_KERNEL __attribute__((always_inline))

namespace lr::cpu {
namespace {

constexpr std::int64_t kPairs = 32; // numbers in a register
constexpr int kSteps = 4;           // registers of a block
static_assert(kSteps * kPairs == kDotBlock);

// Bytes 0..127 of a table of the positive E4M3 codes' bf16 codes: low bytes, or high bytes.
using ByteTable = std::array<std::uint8_t, 128>;
constexpr ByteTable make_e4m3_bytes(int shift) {
    ByteTable table{};
    for (std::uint32_t code = 0; code < 128; ++code)
        table[code] = static_cast<std::uint8_t>(
            std::bit_cast<std::uint32_t>(numerics::kE4M3Values[code]) >> shift);
    return table;
}
alignas(64) constexpr ByteTable kE4M3Low = make_e4m3_bytes(16);
alignas(64) constexpr ByteTable kE4M3High = make_e4m3_bytes(24);

// The bf16 codes of e2m1, twice: an index of 5 bits may have any highest bit.
alignas(64) constexpr std::array<std::uint16_t, 32> kE2M1 = {
    0x0000, 0x3F00, 0x3F80, 0x3FC0, 0x4000, 0x4040, 0x4080, 0x40C0, //
    0x8000, 0xBF00, 0xBF80, 0xBFC0, 0xC000, 0xC040, 0xC080, 0xC0C0, //
    0x0000, 0x3F00, 0x3F80, 0x3FC0, 0x4000, 0x4040, 0x4080, 0x40C0, //
    0x8000, 0xBF00, 0xBF80, 0xBFC0, 0xC000, 0xC040, 0xC080, 0xC0C0};

LR_TARGET inline __m512i load_64(const void* from) {
    return _mm512_loadu_si512(from);
}

LR_TARGET inline __m512 add_pairs(__m512 sum, __m512i x, __m512i w) {
    return _mm512_dpbf16_ps(sum, (__m512bh)x, (__m512bh)w);
}

// Four sums of 16 lanes at once, each folded in halves: l and l + 8, 4, 2, 1.
LR_TARGET inline __m128 fold(__m512 a, __m512 b, __m512 c, __m512 d) {
    const __m512 ab =
        _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xEE));
    const __m512 cd =
        _mm512_add_ps(_mm512_shuffle_f32x4(c, d, 0x44), _mm512_shuffle_f32x4(c, d, 0xEE));
    const __m512 four =
        _mm512_add_ps(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xDD));
    const __m512 two = _mm512_add_ps(four, _mm512_permute_ps(four, 0x4E));
    const __m512 one = _mm512_add_ps(two, _mm512_permute_ps(two, 0xB1));
    const __m512i firsts = _mm512_set_epi32(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 12, 8, 4, 0);
    return _mm512_castps512_ps128(_mm512_permutexvar_ps(firsts, one));
}

// 64 E4M3 codes as two registers of bf16, in the order of dot_position.
LR_TARGET inline void widen_e4m3(__m512i codes, __m512i& first, __m512i& second) {
    const __m512i low =
        _mm512_permutex2var_epi8(load_64(kE4M3Low.data()), codes, load_64(kE4M3Low.data() + 64));
    const __m512i magnitude =
        _mm512_permutex2var_epi8(load_64(kE4M3High.data()), codes, load_64(kE4M3High.data() + 64));
    constexpr int kAndOr = 0xEA; // a & b | c
    const __m512i high =
        _mm512_ternarylogic_epi32(codes, _mm512_set1_epi8(-0x80), magnitude, kAndOr);
    first = _mm512_unpacklo_epi8(low, high);
    second = _mm512_unpackhi_epi8(low, high);
}

// One block of codes as bf16, in the order of dot_position.
template <Codes kCodes> LR_TARGET inline void widen(const std::byte* w, __m512i (&out)[kSteps]) {
    if constexpr (kCodes == Codes::kBF16) {
        LR_UNROLL for (int s = 0; s < kSteps; ++s) out[s] = load_64(w + 64 * s);
    } else if constexpr (kCodes == Codes::kE4M3) {
        widen_e4m3(load_64(w), out[0], out[1]);
        widen_e4m3(load_64(w + 64), out[2], out[3]);
    } else {
        const __m512i table = load_64(kE2M1.data());
        const __m512i codes = load_64(w);
        out[0] = _mm512_permutexvar_epi16(codes, table);
        out[1] = _mm512_permutexvar_epi16(_mm512_srli_epi16(codes, 4), table);
        out[2] = _mm512_permutexvar_epi16(_mm512_srli_epi16(codes, 8), table);
        out[3] = _mm512_permutexvar_epi16(_mm512_srli_epi16(codes, 12), table);
    }
}

// bf16 scales of 128 runs of 16, expanded as E4M3 codes are: those of block b are together.
constexpr std::int64_t kScaleBlock = 1024; // numbers behind one register of scales
LR_TARGET inline __m512 lane_scales_of(const std::uint16_t* expanded, std::int64_t block) {
    const std::int64_t at = block / 8 * 64 + block % 2 * 32 + block % 8 / 2 * 8;
    const __m128i eight = _mm_loadu_si128(reinterpret_cast<const __m128i*>(expanded + at));
    // Word 2l + 1 of the result, the upper half of float l, is scale l / 2.
    const __m512i index = _mm512_set_epi64(
        0x0007000000070000, 0x0006000000060000, 0x0005000000050000, 0x0004000000040000,
        0x0003000000030000, 0x0002000000020000, 0x0001000000010000, 0);
    return _mm512_castsi512_ps(
        _mm512_maskz_permutexvar_epi16(0xAAAAAAAA, index, _mm512_castsi128_si512(eight)));
}

// E4M3 scales of `count` numbers, as bf16: out has 64 for each 1024 numbers begun.
LR_KERNEL void expand_scales(const std::uint8_t* scales, std::int64_t count, std::uint16_t* out) {
    const std::int64_t runs = count / 16;
    for (std::int64_t i = 0; i < runs; i += 64, out += 64) {
        const std::int64_t some = std::min<std::int64_t>(64, runs - i);
        const __mmask64 mask = ~std::uint64_t{0} >> (64 - some);
        __m512i first, second;
        widen_e4m3(_mm512_maskz_loadu_epi8(mask, scales + i), first, second);
        _mm512_storeu_si512(out, first);
        _mm512_storeu_si512(out + 32, second);
    }
}

// The codes of a row's last block, zeros behind them.
struct Tail {
    alignas(64) std::byte codes[2 * kDotBlock];
};

void copy_tail(const std::byte* w, std::int64_t bytes, Tail& tail) {
    std::memset(tail.codes, 0, sizeof(tail.codes));
    std::memcpy(tail.codes, w, static_cast<std::size_t>(bytes));
}

// Rows row, row + 1, ... and columns column, column + step, ...; those behind the last repeat it.
template <int kRows, int kColumns> struct BfTile {
    const std::uint16_t* x[kRows];
    const std::byte* w[kColumns];
    std::int64_t row, column, step;

    LR_TARGET BfTile(const Bf16DotArgs& args, std::int64_t row_in, std::int64_t column_in,
                     std::int64_t step_in = 1)
        : row(row_in), column(column_in), step(step_in) {
        LR_UNROLL for (int i = 0; i < kRows; ++i) x[i] = args.x + row_at(args, i) * args.x_stride;
        LR_UNROLL for (int j = 0; j < kColumns; ++j) w[j] =
            args.w + column_at(args, j) * args.w_stride;
    }

    LR_TARGET std::int64_t row_at(const Bf16DotArgs& args, int i) const {
        return std::min(row + i, args.rows - 1);
    }
    LR_TARGET std::int64_t column_at(const Bf16DotArgs& args, int j) const {
        return std::min(column + j * step, args.columns - 1);
    }
    LR_TARGET const float* block_scale(const Bf16DotArgs& args, int i) const {
        return args.block_scales.values + row_at(args, i) * args.block_scales.row_step;
    }

    LR_TARGET void store(const Bf16DotArgs& args, const __m512 (&sums)[kRows][kColumns]) const {
        static_assert(kColumns == 3 || kColumns == 4);
        LR_UNROLL for (int i = 0; i < kRows; ++i) {
            const __m128 dots = fold(sums[i][0], sums[i][1], sums[i][2], sums[i][kColumns - 1]);
            if (row + i >= args.rows)
                continue;
            float* out = args.out + (row + i) * args.out_stride + column;
            if (step == 1) {
                const std::int64_t some = std::min<std::int64_t>(kColumns, args.columns - column);
                _mm_mask_storeu_ps(out, static_cast<__mmask8>((1 << some) - 1), dots);
                continue;
            }
            alignas(16) float each[4];
            _mm_store_ps(each, dots);
            LR_UNROLL for (int j = 0; j < kColumns; ++j) if (column + j * step < args.columns)
                out[j * step] = each[j];
        }
    }
};

// Numbers whose NVFP4 scales are at hand, and those scales of one column.
constexpr std::int64_t kScaleRun = 8 * kScaleBlock;
using ScaleRun = std::uint16_t[kScaleRun / 16];

// A block of codes of every column, at w, against block `block` of x; `scales` are kNvfp4's, of
// which the block's are number `scaled`.
template <Codes kCodes, bool kScaled, int kRows, int kColumns>
LR_TARGET inline void add_block(const Bf16DotArgs& args, const BfTile<kRows, kColumns>& tile,
                                std::int64_t block, const std::byte* const (&w)[kColumns],
                                const ScaleRun* scales, std::int64_t scaled,
                                __m512 (&sums)[kRows][kColumns]) {
    LR_UNROLL for (int j = 0; j < kColumns; ++j) {
        __m512i codes[kSteps];
        widen<kCodes>(w[j], codes);
        __m512 scale = _mm512_setzero_ps();
        if constexpr (kCodes == Codes::kNvfp4)
            scale = lane_scales_of(scales[j], scaled);
        LR_UNROLL for (int i = 0; i < kRows; ++i) {
            const std::uint16_t* x = tile.x[i] + block * kDotBlock;
            __m512 sum = kScaled ? _mm512_setzero_ps() : sums[i][j];
            LR_UNROLL for (int s = 0; s < kSteps; ++s) sum =
                add_pairs(sum, load_64(x + kPairs * s), codes[s]);
            if constexpr (kScaled && kCodes == Codes::kE4M3)
                scale = _mm512_set1_ps(tile.block_scale(args, i)[block]);
            sums[i][j] = kScaled ? _mm512_fmadd_ps(scale, sum, sums[i][j]) : sum;
        }
    }
}

// Those of every column from number k on.
template <int kRows, int kColumns> LR_KERNEL void expand_scales(const Bf16DotArgs& args,
                                                                const BfTile<kRows, kColumns>& tile,
                                                                std::int64_t k, ScaleRun* scales) {
    for (int j = 0; j < kColumns; ++j)
        expand_scales(args.scales + tile.column_at(args, j) * args.scale_stride + k / 16,
                      std::min(kScaleRun, args.count - k), scales[j]);
}

// Each column's codes are wanted in the second-level cache this many bytes ahead of their use: the
// first level waits for too few lines at a time to keep memory busy.
constexpr std::int64_t bytes_ahead(Codes codes) {
    return codes == Codes::kBF16 ? 1024 : 2048;
}

// kRows x kColumns dots of codes as they lie.
template <Codes kCodes, bool kScaled, int kRows, int kColumns>
LR_KERNEL void dot_codes(const Bf16DotArgs& args, const BfTile<kRows, kColumns>& tile) {
    constexpr std::int64_t kBlockBytes = code_bytes(kCodes, kDotBlock);
    __m512 sums[kRows][kColumns];
    LR_UNROLL for (int i = 0; i < kRows; ++i) LR_UNROLL for (int j = 0; j < kColumns; ++j)
        sums[i][j] = _mm512_setzero_ps();
    alignas(64) ScaleRun scales[kCodes == Codes::kNvfp4 ? kColumns : 1];
    const std::byte* w[kColumns];
    const std::int64_t whole = args.count / kDotBlock;
    for (std::int64_t block = 0; block < whole; ++block) {
        const std::int64_t scaled = block % (kScaleRun / kDotBlock);
        if (kCodes == Codes::kNvfp4 && scaled == 0)
            expand_scales(args, tile, block * kDotBlock, scales);
        LR_UNROLL for (int j = 0; j < kColumns; ++j) {
            w[j] = tile.w[j] + block * kBlockBytes;
            LR_UNROLL for (std::int64_t line = 0; line < kBlockBytes; line += 64) _mm_prefetch(
                reinterpret_cast<const char*>(w[j]) + bytes_ahead(kCodes) + line, _MM_HINT_T1);
        }
        add_block<kCodes, kScaled>(args, tile, block, w, scales, scaled, sums);
    }
    if (whole * kDotBlock < args.count) {
        Tail tails[kColumns];
        for (int j = 0; j < kColumns; ++j) {
            copy_tail(tile.w[j] + whole * kBlockBytes,
                      code_bytes(kCodes, args.count - whole * kDotBlock), tails[j]);
            w[j] = tails[j].codes;
        }
        if (kCodes == Codes::kNvfp4)
            expand_scales(args, tile, whole * kDotBlock, scales);
        add_block<kCodes, kScaled>(args, tile, whole, w, scales, 0, sums);
    }
    tile.store(args, sums);
}

// The columns of a tile lie far apart, so that each is followed by the next tile's in memory: as
// many long streams, which is what memory is read fastest in.
template <Codes kCodes, bool kScaled, int kRows, int kColumns>
LR_KERNEL void dot_rows(const Bf16DotArgs& args, std::int64_t row) {
    const std::int64_t step = (args.columns + kColumns - 1) / kColumns;
    for (std::int64_t column = 0; column < step; ++column)
        dot_codes<kCodes, kScaled>(args, BfTile<kRows, kColumns>(args, row, column, step));
}

template <Codes kCodes, bool kScaled> LR_KERNEL void dot_all(const Bf16DotArgs& args) {
    std::int64_t row = 0;
    for (; row + 4 <= args.rows || args.rows - row == 3; row += 4)
        dot_rows<kCodes, kScaled, 4, 4>(args, row);
    if (args.rows - row == 2)
        dot_rows<kCodes, kScaled, 2, 4>(args, row);
    if (args.rows - row == 1)
        dot_rows<kCodes, kScaled, 1, 4>(args, row);
}

LR_KERNEL void dot(Codes codes, const Bf16DotArgs& args) {
    if (codes == Codes::kNvfp4)
        return dot_all<Codes::kNvfp4, true>(args);
    if (codes == Codes::kBF16)
        return dot_all<Codes::kBF16, false>(args);
    if (args.block_scales.values)
        return dot_all<Codes::kE4M3, true>(args);
    dot_all<Codes::kE4M3, false>(args);
}

// How a block's sum is scaled, with expanded weights.
enum class Scaling : std::uint8_t { kNone, kBlock, kLanes };

// Blocks [first, last) of a tile of expanded rows, on top of `sums`.
template <Scaling kScaling, int kRows, int kColumns>
LR_TARGET inline void add_blocks(const Bf16DotArgs& args, const BfTile<kRows, kColumns>& tile,
                                 std::int64_t first, std::int64_t last,
                                 __m512 (&sums)[kRows][kColumns]) {
    for (std::int64_t block = first; block < last; ++block) {
        __m512 part[kRows][kColumns];
        if constexpr (kScaling != Scaling::kNone)
            LR_UNROLL for (int i = 0; i < kRows; ++i) LR_UNROLL for (int j = 0; j < kColumns; ++j)
                part[i][j] = _mm512_setzero_ps();
        auto& into = kScaling == Scaling::kNone ? sums : part;
        LR_UNROLL for (int s = 0; s < kSteps; ++s) {
            const std::int64_t at = block * kDotBlock + s * kPairs;
            __m512i right[kColumns];
            LR_UNROLL for (int j = 0; j < kColumns; ++j) right[j] =
                load_64(reinterpret_cast<const std::uint16_t*>(tile.w[j]) + at);
            LR_UNROLL for (int i = 0; i < kRows; ++i) {
                __m512i left = load_64(tile.x[i] + at);
                __asm__("" : "+v"(left)); // one load for all columns
                LR_UNROLL for (int j = 0; j < kColumns; ++j) into[i][j] =
                    add_pairs(into[i][j], left, right[j]);
            }
        }
        if constexpr (kScaling == Scaling::kBlock)
            LR_UNROLL for (int i = 0; i < kRows; ++i) {
                const __m512 scale = _mm512_set1_ps(tile.block_scale(args, i)[block]);
                LR_UNROLL for (int j = 0; j < kColumns; ++j) sums[i][j] =
                    _mm512_fmadd_ps(scale, part[i][j], sums[i][j]);
            }
        if constexpr (kScaling == Scaling::kLanes)
            LR_UNROLL for (int j = 0; j < kColumns; ++j) {
                const __m512 scale = _mm512_loadu_ps(args.lane_scales +
                                                     std::min(tile.column + j, args.columns - 1) *
                                                         args.lane_scale_stride +
                                                     block * kLanes);
                LR_UNROLL for (int i = 0; i < kRows; ++i) sums[i][j] =
                    _mm512_fmadd_ps(scale, part[i][j], sums[i][j]);
            }
    }
}

// The same on top of `lanes` [kRows, kColumns, 16], or from zero on to the results if that is all.
template <Scaling kScaling, int kRows, int kColumns>
LR_KERNEL void add_tile(const Bf16DotArgs& args, const BfTile<kRows, kColumns>& tile,
                        std::int64_t first, std::int64_t last, float* lanes) {
    __m512 sums[kRows][kColumns];
    LR_UNROLL for (int i = 0; i < kRows; ++i) LR_UNROLL for (int j = 0; j < kColumns; ++j)
        sums[i][j] =
            lanes ? _mm512_load_ps(lanes + (i * kColumns + j) * kLanes) : _mm512_setzero_ps();
    add_blocks<kScaling>(args, tile, first, last, sums);
    if (!lanes)
        return tile.store(args, sums);
    LR_UNROLL for (int i = 0; i < kRows; ++i) LR_UNROLL for (int j = 0; j < kColumns; ++j)
        _mm512_store_ps(lanes + (i * kColumns + j) * kLanes, sums[i][j]);
}

template <int kRows, int kColumns> LR_KERNEL void
store_lanes(const Bf16DotArgs& args, const BfTile<kRows, kColumns>& tile, const float* lanes) {
    __m512 sums[kRows][kColumns];
    LR_UNROLL for (int i = 0; i < kRows; ++i) LR_UNROLL for (int j = 0; j < kColumns; ++j)
        sums[i][j] = _mm512_load_ps(lanes + (i * kColumns + j) * kLanes);
    tile.store(args, sums);
}

// A block of tiles walks down the columns together, a chunk at a time: 12 rows of 4096 numbers are
// 96 KiB of a second-level cache, which keeps up; sums that go to memory and back cost more.
constexpr std::int64_t kTiledRows = 12, kTiledColumns = 12, kChunkBlocks = 32;

template <Scaling kScaling, int kRows, int kColumns>
LR_KERNEL void dot_tiles(const Bf16DotArgs& args, std::int64_t row, std::int64_t column) {
    using Tile = BfTile<kRows, kColumns>;
    constexpr std::int64_t kTile = kRows * kColumns * kLanes;
    static_assert(kTiledRows % kRows == 0 && kTiledColumns % kColumns == 0);
    alignas(64) float lanes[kTiledRows * kTiledColumns * kLanes];
    const std::int64_t rows = std::min(kTiledRows, args.rows - row);
    const std::int64_t columns = std::min(kTiledColumns, args.columns - column);
    const std::int64_t blocks = packed_count(args.count) / kDotBlock;
    const bool at_once = blocks <= kChunkBlocks;
    if (!at_once)
        std::memset(lanes, 0, sizeof(lanes));
    std::int64_t first = 0;
    do {
        float* tile = lanes;
        for (std::int64_t j = 0; j < columns; j += kColumns)
            for (std::int64_t i = 0; i < rows; i += kRows, tile += kTile)
                add_tile<kScaling>(args, Tile(args, row + i, column + j), first,
                                   std::min(blocks, first + kChunkBlocks),
                                   at_once ? nullptr : tile);
        first += kChunkBlocks;
    } while (first < blocks);
    if (at_once)
        return;
    const float* tile = lanes;
    for (std::int64_t j = 0; j < columns; j += kColumns)
        for (std::int64_t i = 0; i < rows; i += kRows, tile += kTile)
            store_lanes(args, Tile(args, row + i, column + j), tile);
}

template <Scaling kScaling, int kRows, int kColumns>
LR_KERNEL void dot_all_tiles(const Bf16DotArgs& args) {
    for (std::int64_t row = 0; row < args.rows; row += kTiledRows)
        for (std::int64_t column = 0; column < args.columns; column += kTiledColumns)
            dot_tiles<kScaling, kRows, kColumns>(args, row, column);
}

LR_KERNEL void dot_expanded(Codes codes, const Bf16DotArgs& args) {
    if (codes == Codes::kNvfp4)
        return dot_all_tiles<Scaling::kLanes, 4, 3>(args);
    if (args.block_scales.values)
        return dot_all_tiles<Scaling::kBlock, 4, 3>(args);
    dot_all_tiles<Scaling::kNone, 6, 4>(args);
}

// One block of 128 numbers into the order of NVFP4.
LR_TARGET inline void pack_nvfp4(const std::byte* x, std::uint16_t* packed) {
    const __m512i numbers =
        _mm512_set_epi16(124, 120, 116, 112, 108, 104, 100, 96, 92, 88, 84, 80, 76, 72, 68, 64, 60,
                         56, 52, 48, 44, 40, 36, 32, 28, 24, 20, 16, 12, 8, 4, 0);
    LR_UNROLL for (int s = 0; s < kSteps; ++s) {
        const __m512i index = _mm512_add_epi16(numbers, _mm512_set1_epi16(static_cast<short>(s)));
        const __m512i low = _mm512_permutex2var_epi16(load_64(x), index, load_64(x + 64));
        const __m512i high = _mm512_permutex2var_epi16(load_64(x + 128), index, load_64(x + 192));
        _mm512_storeu_si512(packed + kPairs * s, _mm512_mask_mov_epi16(low, 0xFFFF0000, high));
    }
}

// The same for E4M3: eight numbers stay together.
LR_TARGET inline void pack_e4m3(const std::byte* x, std::uint16_t* packed) {
    const __m512i even = _mm512_set_epi64(13, 12, 9, 8, 5, 4, 1, 0);
    const __m512i odd = _mm512_set_epi64(15, 14, 11, 10, 7, 6, 3, 2);
    LR_UNROLL for (int half = 0; half < 2; ++half) {
        const __m512i low = load_64(x + 128 * half), high = load_64(x + 128 * half + 64);
        _mm512_storeu_si512(packed + 64 * half, _mm512_permutex2var_epi64(low, even, high));
        _mm512_storeu_si512(packed + 64 * half + 32, _mm512_permutex2var_epi64(low, odd, high));
    }
}

LR_KERNEL void pack_block(Codes order, const std::byte* x, std::uint16_t* packed) {
    if (order == Codes::kNvfp4)
        return pack_nvfp4(x, packed);
    if (order == Codes::kE4M3)
        return pack_e4m3(x, packed);
    std::memcpy(packed, x, 2 * kDotBlock);
}

LR_KERNEL void pack(Codes order, const std::byte* x, std::int64_t count, std::uint16_t* packed) {
    std::int64_t k = 0;
    for (; k + kDotBlock <= count; k += kDotBlock)
        pack_block(order, x + 2 * k, packed + k);
    if (k == count)
        return;
    Tail tail;
    copy_tail(x + 2 * k, 2 * (count - k), tail);
    pack_block(order, tail.codes, packed + k);
}

template <Codes kCodes>
LR_KERNEL void expand_codes(const std::byte* w, std::int64_t count, std::uint16_t* packed) {
    Tail tail;
    for (std::int64_t k = 0; k < count; k += kDotBlock) {
        const std::byte* from = w + code_bytes(kCodes, k);
        if (count - k < kDotBlock) {
            copy_tail(from, code_bytes(kCodes, count - k), tail);
            from = tail.codes;
        }
        __m512i codes[kSteps];
        widen<kCodes>(from, codes);
        LR_UNROLL for (int s = 0; s < kSteps; ++s)
            _mm512_storeu_si512(packed + k + kPairs * s, codes[s]);
    }
}

LR_KERNEL void expand(Codes codes, const std::byte* w, const std::uint8_t* scales,
                      std::int64_t count, std::uint16_t* packed, float* lane_scales) {
    if (codes == Codes::kBF16)
        return expand_codes<Codes::kBF16>(w, count, packed);
    if (codes == Codes::kE4M3)
        return expand_codes<Codes::kE4M3>(w, count, packed);
    expand_codes<Codes::kNvfp4>(w, count, packed);
    alignas(64) std::uint16_t some[kScaleBlock / 16];
    for (std::int64_t k = 0; k < count; k += kDotBlock) {
        if (k % kScaleBlock == 0)
            expand_scales(scales + k / 16, std::min(kScaleBlock, count - k), some);
        _mm512_storeu_ps(lane_scales + k / kDotBlock * kLanes,
                         lane_scales_of(some, k % kScaleBlock / kDotBlock));
    }
}

} // namespace

const Bf16Kernels kAvx512Bf16Dots = {pack, expand, dot, dot_expanded};

} // namespace lr::cpu
#endif
