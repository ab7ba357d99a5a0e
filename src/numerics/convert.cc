// SPDX-License-Identifier: Apache-2.0
#include "numerics/convert.h"

#include "core/check.h"
#include "numerics/bf16.h"
#include "numerics/e2m1.h"
#include "numerics/e4m3.h"
#include "numerics/f16.h"
#include "numerics/ue8m0.h"

#include <cstring>

namespace lr::numerics {
namespace {

// memcpy, because a file may place a tensor at any address.
template <typename CodeT>
void decode_each(const std::byte* source, std::int64_t count, float* out, float (*decode)(CodeT)) {
    for (std::int64_t i = 0; i < count; ++i) {
        CodeT code;
        std::memcpy(&code, source + i * static_cast<std::int64_t>(sizeof(CodeT)), sizeof(CodeT));
        out[i] = decode(code);
    }
}

template <typename CodeT>
void encode_each(const float* source, std::int64_t count, std::byte* out, CodeT (*encode)(float)) {
    for (std::int64_t i = 0; i < count; ++i) {
        const CodeT code = encode(source[i]);
        std::memcpy(out + i * static_cast<std::int64_t>(sizeof(CodeT)), &code, sizeof(CodeT));
    }
}

} // namespace

void decode_to_f32(DType dtype, const std::byte* source, std::int64_t count, float* out) {
    switch (dtype) {
    case DType::kF32:
        if (count > 0)
            std::memcpy(out, source, static_cast<std::size_t>(count) * sizeof(float));
        return;
    case DType::kBF16:
        return decode_each<std::uint16_t>(source, count, out, decode_bf16);
    case DType::kF16:
        return decode_each<std::uint16_t>(source, count, out, decode_f16);
    case DType::kE4M3:
        return decode_each<std::uint8_t>(source, count, out, decode_e4m3);
    case DType::kUE8M0:
        return decode_each<std::uint8_t>(source, count, out, decode_ue8m0);
    case DType::kE2M1:
        LR_CHECK_EQ(count % 2, 0);
        for (std::int64_t i = 0; i < count; ++i)
            out[i] = decode_e2m1(unpack_e2m1(reinterpret_cast<const std::uint8_t*>(source), i));
        return;
    default:
        LR_CHECK_EQ(dtype_name(dtype), "a float dtype");
    }
}

void encode_from_f32(DType dtype, const float* source, std::int64_t count, std::byte* out) {
    switch (dtype) {
    case DType::kF32:
        if (count > 0)
            std::memcpy(out, source, static_cast<std::size_t>(count) * sizeof(float));
        return;
    case DType::kBF16:
        return encode_each<std::uint16_t>(source, count, out, encode_bf16);
    case DType::kF16:
        return encode_each<std::uint16_t>(source, count, out, encode_f16);
    case DType::kE4M3:
        return encode_each<std::uint8_t>(source, count, out, encode_e4m3);
    case DType::kUE8M0:
        return encode_each<std::uint8_t>(source, count, out, encode_ue8m0_nearest);
    case DType::kE2M1:
        LR_CHECK_EQ(count % 2, 0);
        for (std::int64_t i = 0; i < count; i += 2)
            out[i / 2] = static_cast<std::byte>(
                pack_e2m1(encode_e2m1(source[i]), encode_e2m1(source[i + 1])));
        return;
    default:
        LR_CHECK_EQ(dtype_name(dtype), "a float dtype");
    }
}

} // namespace lr::numerics
