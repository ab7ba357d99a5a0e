// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/quant_values.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace lr::checkpoint {
namespace {

std::string index_text(const TensorInfo& tensor, std::int64_t i) {
    std::string text;
    for (int d = tensor.shape.rank() - 1; d >= 0; --d) {
        text = fmt::format("{}{}{}", i % tensor.shape[d], text.empty() ? "" : ", ", text);
        i /= tensor.shape[d];
    }
    return text.empty() ? "" : fmt::format(" at [{}]", text);
}

Failure bad_value(const TensorInfo& tensor, std::int64_t i, std::string_view expected) {
    const float value = float_at(tensor, i);
    return fail(Code::kInvalidFile, "tensor '{}': expected {}, got {}{}", tensor.name, expected,
                std::isnan(value) ? "NaN" : fmt::format("{}", value), index_text(tensor, i));
}

constexpr std::string_view kScale = "finite scales >= 0";

// Eight E4M3 codes at a time: there are as many of them as a sixteenth of all weights. Neither NaN
// (0x7F, 0xFF) nor negative (0x81..0xFE); -0 is 0.
constexpr std::uint64_t kOnes = 0x0101010101010101;
std::uint64_t bad_e4m3(std::uint64_t codes) {
    const std::uint64_t magnitude = codes & 0x7F * kOnes;
    const std::uint64_t nan = magnitude + kOnes;
    const std::uint64_t negative = codes & (magnitude + 0x7F * kOnes);
    return (nan | negative) & 0x80 * kOnes;
}

// The upper bit of each byte that is a zero.
std::uint64_t zeros_of(std::uint64_t codes) {
    return ~((codes & 0x7F * kOnes) + 0x7F * kOnes) & 0x80 * kOnes;
}

std::int64_t zeros_e4m3(std::uint64_t codes) {
    return __builtin_popcountll(zeros_of(codes));
}

Status check_e4m3_scales(const TensorInfo& tensor, ScaleCounts& counts) {
    const auto look = [&](std::uint64_t codes, std::int64_t at) -> Status {
        if (const std::uint64_t bad = bad_e4m3(codes))
            return bad_value(tensor, at + __builtin_ctzll(bad) / 8, kScale);
        counts.zeros += zeros_e4m3(codes);
        return {};
    };
    std::int64_t i = 0;
    // Runs without a NaN, a negative number or a zero, which is nearly all of them, cost one test.
    constexpr std::int64_t kRun = 64;
    for (; i + kRun <= tensor.bytes; i += kRun) {
        std::array<std::uint64_t, kRun / 8> codes;
        std::memcpy(codes.data(), tensor.data + i, sizeof(codes));
        std::uint64_t odd = 0;
        for (std::uint64_t eight : codes)
            odd |= bad_e4m3(eight) | zeros_of(eight);
        if (odd == 0)
            continue;
        for (std::size_t j = 0; j < codes.size(); ++j)
            LR_TRY(look(codes[j], i + 8 * static_cast<std::int64_t>(j)));
    }
    for (; i < tensor.bytes; i += 8) {
        std::uint64_t codes = 0x38 * kOnes; // past the end: 1.0
        std::memcpy(&codes, tensor.data + i,
                    static_cast<std::size_t>(std::min<std::int64_t>(8, tensor.bytes - i)));
        LR_TRY(look(codes, i));
    }
    return {};
}

Status check_float_scales(const TensorInfo& tensor, ScaleCounts& counts) {
    const std::int64_t count = tensor.shape.count();
    for (std::int64_t i = 0; i < count; ++i) {
        const float value = float_at(tensor, i);
        if (!std::isfinite(value) || value < 0)
            return bad_value(tensor, i, kScale);
        counts.zeros += value == 0;
    }
    return {};
}

// The rows [first, first + rows) of a matrix have zero codes only.
Status check_dead(const StoredWeight& weight, std::int64_t factor_index, std::int64_t first_byte,
                  std::int64_t bytes) {
    // The sign of a zero is not a value: E2M1 has two codes to a byte, E4M3 one.
    const auto magnitude = weight.format == StoredFormat::kFp8Tensor ? 0x7F : 0x77;
    const std::byte* codes = weight.weight->data + first_byte;
    for (std::int64_t i = 0; i < bytes; ++i)
        if ((std::to_integer<int>(codes[i]) & magnitude) != 0)
            return fail(Code::kInvalidFile,
                        "tensor '{}': expected a factor > 0, got 0{} while '{}' has codes that are "
                        "not zero (first at byte {})",
                        weight.factor->name, index_text(*weight.factor, factor_index),
                        weight.weight->name, first_byte + i);
    return {};
}

Status check_factors(const StoredWeight& weight, ScaleCounts& counts) {
    const TensorInfo& factor = *weight.factor;
    const bool divides = weight.format == StoredFormat::kNvfp4Compressed;
    const std::int64_t count = factor.shape.count();
    const std::int64_t codes = count > 0 ? weight.weight->bytes / count : 0;
    for (std::int64_t i = 0; i < count; ++i) {
        const float value = float_at(factor, i);
        if (!std::isfinite(value) || value < 0)
            return bad_value(factor, i, divides ? "a finite factor > 0" : "a finite factor >= 0");
        if (divides && (value == 0 || !std::isfinite(weight.decode_multiplier(value))))
            return bad_value(factor, i, "a factor > 0 whose inverse is finite");
        if (value == 0)
            LR_TRY(check_dead(weight, i, i * codes, codes));
        counts.zeros += value == 0;
    }
    counts.scales += count;
    counts.bytes += factor.bytes;
    return {};
}

} // namespace

Status check_scales(const StoredWeight& weight, ScaleCounts& counts) {
    if (weight.factor != nullptr)
        LR_TRY(check_factors(weight, counts));
    if (weight.scale == nullptr)
        return {};
    counts.scales += weight.scale->shape.count();
    counts.bytes += weight.scale->bytes;
    return weight.scale->dtype == DType::kE4M3 ? check_e4m3_scales(*weight.scale, counts)
                                               : check_float_scales(*weight.scale, counts);
}

Result<float> static_input_scale(const StoredWeight& weight) {
    if (weight.input_scale == nullptr)
        return 0.0f;
    const TensorInfo& tensor = *weight.input_scale;
    const bool divides = weight.format == StoredFormat::kNvfp4Compressed;
    float largest = 0; // as a decode multiplier
    std::int64_t at = 0;
    for (std::int64_t i = 0; i < tensor.shape.count(); ++i) {
        const float value = float_at(tensor, i);
        if (!std::isfinite(value) || value < 0 || (divides && value == 0))
            return bad_value(tensor, i,
                             divides ? "a finite input scale > 0" : "a finite input scale >= 0");
        const float scale = weight.decode_multiplier(value);
        if (scale > largest) {
            largest = scale;
            at = i;
        }
    }
    const bool usable = largest == 0 || (std::isnormal(largest) && std::isnormal(1 / largest));
    if (!usable)
        return bad_value(tensor, at, "an input scale that is normal and has a normal inverse");
    return largest;
}

Result<float> read_kv_scale(const TensorInfo& tensor) {
    const bool type = tensor.dtype == DType::kF32 || tensor.dtype == DType::kBF16;
    if (!type || tensor.shape.count() != 1)
        return fail(Code::kInvalidFile, "tensor '{}': expected one F32 or BF16 value, got {}",
                    tensor.name, tensor.describe());
    const float value = float_at(tensor, 0);
    if (!std::isfinite(value) || value <= 0)
        return bad_value(tensor, 0, "a finite scale > 0");
    return value;
}

} // namespace lr::checkpoint
