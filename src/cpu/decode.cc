// SPDX-License-Identifier: Apache-2.0
#include "cpu/decode.h"

#include "numerics/convert.h"
#include "numerics/e2m1.h"

#include <array>
#include <cstring>

namespace lr::cpu {
namespace {

constexpr std::int64_t kRun = 8;

typedef std::uint16_t Half8 __attribute__((vector_size(16)));

// A bf16 code is the upper half of its f32: interleave with zeros.
void decode_bf16_run(const std::byte* source, float* out) {
    Half8 codes;
    std::memcpy(&codes, source, sizeof(codes));
    const Half8 zero = {};
    const Half8 low = __builtin_shufflevector(zero, codes, 0, 8, 0, 9, 0, 10, 0, 11);
    const Half8 high = __builtin_shufflevector(zero, codes, 0, 12, 0, 13, 0, 14, 0, 15);
    std::memcpy(out, &low, sizeof(low));
    std::memcpy(out + 4, &high, sizeof(high));
}

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

void decode_row(DType dtype, const std::byte* source, std::int64_t count, float* out) {
    std::int64_t i = 0;
    if (dtype == DType::kBF16)
        for (; i + kRun <= count; i += kRun)
            decode_bf16_run(source + 2 * i, out + i);
    else if (dtype == DType::kE2M1)
        for (; i + 2 <= count; i += 2)
            std::memcpy(out + i, &kPairs[static_cast<std::uint8_t>(source[i / 2])], sizeof(Pair));
    numerics::decode_to_f32(dtype, source + dtype_bytes(dtype, i), count - i, out + i);
}

} // namespace lr::cpu
