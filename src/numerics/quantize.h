// SPDX-License-Identifier: Apache-2.0
//
// numerics/quantize.h: the quantisers and dequantisers, bit for bit. Every other implementation is
// held against these functions.
//
// Arithmetic. Everything is f32 and every operation rounds once; "/" is the true division, never a
// multiplication by a reciprocal. Inputs are the values as the caller rounded them (bf16 where the
// model says so), widened to f32.
//   amax     largest |x_j|, independent of order; NaN when any element is NaN
//   kTiny    2^-100 stands in for any smaller amax: a zero row gets s = kTiny/448 and codes 0. No
//            scale and no non-zero product is then subnormal, and a subnormal input or quotient
//            becomes code 0 in any case, so a device that flushes subnormals computes the same bits
//            (a row of 1e-38 becomes codes 0)
//
// FP8      s = max(amax, kTiny) / 448;  q_j = e4m3(x_j / s), saturating;  value = q_j * s
//          The runs that share one s: a row (per token, per channel), a group of 128 along K, a
//          128x128 block of a weight, a whole tensor.
//          Non-finite runs stay visible: with a NaN, s and all codes are NaN; with an infinity and
//          no NaN, s is infinite, infinite elements get the NaN code and finite ones 0, and every
//          dequantised value is NaN.
//
// NVFP4    blocks of 16 along K, one E4M3 scale sf a block, one global factor G a tensor:
//            activation (node routed_input_nvfp4_quant):  sf = e4m3(G * (amax / 6)), saturating
//            ModelOpt weight:   sf = e4m3(clamp((amax / 6) / D, 2^-9, 448)); zero block: sf = 1.0
//            compressed-tensors weight:  sf as for activations; where it rounds to 0: sf = 0.125
//            codes:  q_j = e2m1(x_j / d), d = sf / G (activation, compressed) or sf * D (ModelOpt)
//            value = (q_j * sf) * D;  q_j * sf is exact in f32 and in bf16
//          G is the encode multiplier, D = 1/G the decode multiplier; the types keep them apart.
//          A weight's sf may instead be searched (BlockScales::kMse): of the codes from
//          kSearchBelow under the one above to kSearchAbove over it (within 2^-9 .. 448), the one
//          whose block has the smallest sum over j of (value_j - x_j)^2, in f32, element j added to
//          j + 8, then 4, 2, 1; of equals the one above, then the smallest. kSearchAbove reaches
//          the factor 6/4, where the largest element becomes code 4 instead of 6.
//          An activation block whose sf rounds to 0 stores codes 0. A block with a NaN or an
//          infinity stores sf = NaN and codes 7, and every dequantised value is NaN.
//          G and D are positive, finite and normal; a checkpoint's factors are checked at load.
#pragma once

#include "numerics/e2m1.h"
#include "numerics/e4m3.h"

#include <cstdint>
#include <span>

namespace lr::numerics {

inline constexpr float kTiny = 0x1p-100f;
inline constexpr std::int64_t kFp8Group = 128;
inline constexpr std::int64_t kFp8Block = 128;
inline constexpr std::int64_t kNvfp4Block = 16;

struct DecodeScale;

// G: multiplies on the way in. compressed-tensors stores this one (`weight_global_scale`).
struct EncodeScale {
    explicit constexpr EncodeScale(float g) : value(g) {}
    explicit constexpr EncodeScale(DecodeScale decode);
    float value;
};

// D = 1/G: multiplies on the way out. ModelOpt stores this one (`weight_scale_2`, `input_scale`).
struct DecodeScale {
    explicit constexpr DecodeScale(float d) : value(d) {}
    explicit constexpr DecodeScale(EncodeScale encode) : value(1.0f / encode.value) {}
    float value;
};

constexpr EncodeScale::EncodeScale(DecodeScale decode) : value(1.0f / decode.value) {}

// D = max(amax, kTiny) / (6 * 448), for a tensor whose largest magnitude is `amax`.
DecodeScale nvfp4_decode_scale(float amax);

// Largest magnitude of x, 0 for an empty x, NaN when any element is NaN.
float absolute_max(std::span<const float> x);

// s = max(amax, kTiny) / 448.
float fp8_scale(float amax);

// One scale for all of x. x, q: equal lengths. Returns s.
float quantize_fp8(std::span<const float> x, std::span<std::uint8_t> q);

// With a given scale (per-tensor static `input_scale`): q_j = e4m3(x_j / s).
void quantize_fp8_with_scale(std::span<const float> x, float s, std::span<std::uint8_t> q);

// value_j = q_j * s.
void dequantize_fp8(std::span<const std::uint8_t> q, float s, std::span<float> x);

// Per row: x, q [rows, cols] dense; scales [rows]. Tokens of an activation, channels of a weight.
void quantize_fp8_rows(std::span<const float> x, std::int64_t cols, std::span<std::uint8_t> q,
                       std::span<float> scales);

// One row, per group of 128 (the last one may be shorter): x, q [K]; scales [ceil(K/128)].
void quantize_fp8_groups(std::span<const float> x, std::span<std::uint8_t> q,
                         std::span<float> scales);
void dequantize_fp8_groups(std::span<const std::uint8_t> q, std::span<const float> scales,
                           std::span<float> x);

// How the file stores `weight_scale_inv`. With kBF16 the scale is rounded to BF16 before the codes
// are formed, so that the stored pair is consistent (an element may then saturate at 448).
enum class ScaleStorage { kF32, kBF16 };

// Weight W [N, K] dense in 128x128 blocks (short at the edges); q [N, K];
// scales [ceil(N/128), ceil(K/128)]. Rows of blocks are independent: a caller that streams may pass
// any multiple of 128 rows at a time.
void quantize_fp8_block(std::span<const float> w, std::int64_t cols, ScaleStorage storage,
                        std::span<std::uint8_t> q, std::span<float> scales);

// NVFP4, one row or many dense ones: x [K], K a multiple of 16; codes [K/2] packed, low nibble =
// even k; sf [K/16] E4M3.
void quantize_nvfp4_activation(std::span<const float> x, EncodeScale g,
                               std::span<std::uint8_t> codes, std::span<std::uint8_t> sf);
enum class BlockScales : std::uint8_t { kAmax, kMse };
inline constexpr int kSearchBelow = 4, kSearchAbove = 6; // codes that the search looks at
void quantize_nvfp4_weight_modelopt(std::span<const float> w, DecodeScale d,
                                    std::span<std::uint8_t> codes, std::span<std::uint8_t> sf,
                                    BlockScales scales = BlockScales::kAmax);
void quantize_nvfp4_weight_compressed(std::span<const float> w, EncodeScale g,
                                      std::span<std::uint8_t> codes, std::span<std::uint8_t> sf,
                                      BlockScales scales = BlockScales::kAmax);
void dequantize_nvfp4(std::span<const std::uint8_t> codes, std::span<const std::uint8_t> sf,
                      DecodeScale d, std::span<float> x);

} // namespace lr::numerics
