// SPDX-License-Identifier: Apache-2.0
#include "cpu/decode.h"

#include "cpu/kernels/kernels.h"
#include "numerics/convert.h"
#include "numerics/e2m1.h"

#include <array>
#include <cstring>
#if defined(__SSE4_1__)
#include <smmintrin.h>
#endif

namespace lr::cpu {
namespace {

constexpr std::int64_t kRun = 8;

typedef std::uint16_t Half8 __attribute__((vector_size(16)));

// A bf16 code is the upper half of its f32: interleave with zeros.
void store_bf16_run(Half8 codes, float* out) {
    const Half8 zero = {};
    const Half8 low = __builtin_shufflevector(zero, codes, 0, 8, 0, 9, 0, 10, 0, 11);
    const Half8 high = __builtin_shufflevector(zero, codes, 0, 12, 0, 13, 0, 14, 0, 15);
    std::memcpy(out, &low, sizeof(low));
    std::memcpy(out + 4, &high, sizeof(high));
}

void decode_bf16_run(const std::byte* source, float* out) {
    Half8 codes;
    std::memcpy(&codes, source, sizeof(codes));
    store_bf16_run(codes, out);
}

#if defined(__SSSE3__) && defined(__SSE4_1__)
constexpr bool kFastE4M3 = true;

// Every E4M3 value is exact in bf16, so the work is done on 16-bit lanes. A normal number moves its
// exponent and mantissa up by 4 bits and its exponent by the difference of the biases, 120. The 8
// subnormals m * 2^-9 come from a table: low bytes, then high bytes, of their bf16 codes.
void decode_e4m3_run(const std::byte* source, float* out) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(source));
    const auto codes = (Half8)_mm_cvtepu8_epi16(bytes);
    const Half8 magnitude = codes & 0x7F;
    const Half8 normal = (magnitude << 4) + (120 << 7);
    const __m128i table = _mm_setr_epi8(0x00, 0x00, -0x80, -0x40, 0x00, 0x20, 0x40, 0x60, 0x00,
                                        0x3B, 0x3B, 0x3B, 0x3C, 0x3C, 0x3C, 0x3C);
    const Half8 index = (magnitude | magnitude << 8) + 0x0800;
    const auto subnormal = (Half8)_mm_shuffle_epi8(table, (__m128i)index);
    const auto is_subnormal = (Half8)_mm_cmpgt_epi16(_mm_set1_epi16(8), (__m128i)magnitude);
    const auto is_nan = (Half8)_mm_cmpeq_epi16((__m128i)magnitude, _mm_set1_epi16(0x7F));
    Half8 value = (is_subnormal & subnormal) | (~is_subnormal & normal);
    value = (is_nan & 0x7FC0) | (~is_nan & value);
    store_bf16_run(value | (codes & 0x80) << 8, out);
}
#else
constexpr bool kFastE4M3 = false;
void decode_e4m3_run(const std::byte*, float*) {}
#endif

// Both values of a packed byte: one load of 8 bytes instead of two of 4.
struct Pair {
    float even, odd;
};
constexpr std::array<Pair, 256> make_pairs() {
    std::array<Pair, 256> pairs{};
    for (std::size_t byte = 0; byte < 256; ++byte)
        pairs[byte] = {numerics::kE2M1Values[byte & 0xF], numerics::kE2M1Values[byte >> 4]};
    return pairs;
}
constexpr std::array<Pair, 256> kPairs = make_pairs();

} // namespace

void decode_codes(DType dtype, const std::byte* source, std::int64_t count, float* out) {
    std::int64_t i = 0;
    if (dtype == DType::kBF16)
        for (; i + kRun <= count; i += kRun)
            decode_bf16_run(source + 2 * i, out + i);
    else if (dtype == DType::kE4M3 && kFastE4M3)
        for (; i + kRun <= count; i += kRun)
            decode_e4m3_run(source + i, out + i);
    else if (dtype == DType::kE2M1)
        for (; i + 2 <= count; i += 2)
            std::memcpy(out + i, &kPairs[static_cast<std::uint8_t>(source[i / 2])], sizeof(Pair));
    numerics::decode_to_f32(dtype, source + dtype_bytes(dtype, i), count - i, out + i);
}

void decode_row(DType dtype, const std::byte* source, std::int64_t count, float* out) {
    switch (dtype) {
    case DType::kBF16:
        return kernels().decode(Codes::kBF16, source, nullptr, count, out);
    case DType::kF16:
        return kernels().decode(Codes::kF16, source, nullptr, count, out);
    case DType::kE4M3:
        return kernels().decode(Codes::kE4M3, source, nullptr, count, out);
    default:
        return decode_codes(dtype, source, count, out);
    }
}

} // namespace lr::cpu
