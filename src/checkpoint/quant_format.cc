// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/quant_format.h"

#include <algorithm>

namespace lr::checkpoint {
namespace {

constexpr std::int64_t kBlock = 128;
constexpr std::int64_t kNvfp4Group = 16;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
    return a / b + (a % b != 0);
}

bool has_dtype(const TensorInfo& tensor, std::initializer_list<DType> dtypes) {
    return tensor.dtype && std::find(dtypes.begin(), dtypes.end(), *tensor.dtype) != dtypes.end();
}

// The shape with its last two dims divided, rounding up.
Shape block_shape(Shape shape, std::int64_t rows, std::int64_t cols) {
    const int rank = shape.rank();
    shape[rank - 2] = ceil_div(shape[rank - 2], rows);
    shape[rank - 1] = ceil_div(shape[rank - 1], cols);
    return shape;
}

Status check_tensor(const TensorInfo& tensor, std::initializer_list<DType> dtypes,
                    std::string_view dtype_names, const Shape& shape, std::string_view why) {
    if (!has_dtype(tensor, dtypes))
        return fail(Code::kInvalidFile, "tensor '{}': expected dtype {}, got {}", tensor.name,
                    dtype_names, tensor.file_dtype);
    if (tensor.shape != shape)
        return fail(Code::kInvalidFile, "tensor '{}': expected shape {} ({}), got {}", tensor.name,
                    shape.to_string(), why, tensor.shape.to_string());
    return {};
}

Status check_one_value(const TensorInfo& tensor) {
    if (!has_dtype(tensor, {DType::kF32, DType::kBF16}) || tensor.shape.count() != 1)
        return fail(Code::kInvalidFile, "tensor '{}': expected one F32 or BF16 value, got {}",
                    tensor.name, tensor.describe());
    return {};
}

// Names and types of what was found, for messages.
std::string describe_siblings(const WeightSiblings& s) {
    std::string text;
    for (const TensorInfo* tensor :
         {s.weight, s.weight_packed, s.weight_scale, s.weight_scale_inv, s.weight_scale_2,
          s.weight_global_scale, s.input_scale, s.input_global_scale})
        if (tensor != nullptr)
            text += fmt::format("{}'{}' {}", text.empty() ? "" : ", ", tensor->name,
                                tensor->describe());
    return text;
}

bool any(std::initializer_list<const TensorInfo*> tensors) {
    return std::any_of(tensors.begin(), tensors.end(), [](auto* t) { return t != nullptr; });
}

Failure contradiction(std::string_view base, const WeightSiblings& siblings,
                      std::string_view expected) {
    return fail(Code::kInvalidFile, "weight '{}': expected {}, got {}", base, expected,
                describe_siblings(siblings));
}

Result<StoredWeight> detect_fp8_block(const TensorInfo& weight, const TensorInfo& scale) {
    LR_TRY(check_tensor(scale, {DType::kF32, DType::kBF16}, "BF16 or F32",
                        block_shape(weight.shape, kBlock, kBlock),
                        fmt::format("128x128 blocks of {}", weight.shape.to_string())));
    return StoredWeight{StoredFormat::kFp8Block, weight.shape, &weight, &scale};
}

Result<StoredWeight> detect_fp8(std::string_view base, const WeightSiblings& s) {
    const TensorInfo& weight = *s.weight;
    if (weight.shape.rank() < 2)
        return contradiction(base, s, "an FP8 weight [N, K]");
    if (any({s.weight_packed, s.weight_scale_2, s.weight_global_scale, s.input_global_scale}) ||
        (s.weight_scale != nullptr) == (s.weight_scale_inv != nullptr))
        return contradiction(base, s,
                             "an F8_E4M3 weight with either weight_scale_inv or weight_scale");
    if (s.weight_scale_inv != nullptr)
        return detect_fp8_block(weight, *s.weight_scale_inv);

    const TensorInfo& scale = *s.weight_scale;
    const std::int64_t rows = weight.shape[weight.shape.rank() - 2];
    if (weight.shape.rank() == 2 && (scale.shape == Shape{rows, 1} || scale.shape == Shape{rows})) {
        LR_TRY(check_tensor(scale, {DType::kF32, DType::kBF16}, "BF16 or F32", scale.shape, ""));
        return StoredWeight{
            StoredFormat::kFp8Channel, weight.shape, &weight, &scale, nullptr, s.input_scale};
    }
    if (scale.shape == block_shape(weight.shape, kBlock, kBlock))
        return detect_fp8_block(weight, scale);
    if (scale.shape.count() == 1) {
        LR_TRY(check_one_value(scale));
        return StoredWeight{
            StoredFormat::kFp8Tensor, weight.shape, &weight, &scale, nullptr, s.input_scale};
    }
    return fail(Code::kInvalidFile,
                "tensor '{}': expected a scale of {} per channel, {} per 128x128 block or one "
                "value for weight {}, got {}",
                scale.name, Shape{rows, 1}.to_string(),
                block_shape(weight.shape, kBlock, kBlock).to_string(), weight.shape.to_string(),
                scale.shape.to_string());
}

// ModelOpt and compressed-tensors differ in names, and in the direction of the global scale.
Result<StoredWeight> detect_nvfp4(std::string_view base, const WeightSiblings& s,
                                  StoredFormat format, const TensorInfo* codes,
                                  const TensorInfo* global, const TensorInfo* input) {
    if (s.weight_scale == nullptr || global == nullptr || s.weight_scale_inv != nullptr)
        return contradiction(base, s,
                             format == StoredFormat::kNvfp4Compressed
                                 ? "weight_packed with weight_scale and weight_global_scale"
                                 : "a U8 weight with weight_scale and weight_scale_2");
    if (!has_dtype(*codes, {DType::kU8}) || codes->shape.rank() < 2)
        return contradiction(base, s, "NVFP4 codes in U8 [N, K/2]");
    Shape shape = codes->shape;
    const int last = shape.rank() - 1;
    if (shape[last] % (kNvfp4Group / 2) != 0 || shape[last] > INT64_MAX / 2)
        return contradiction(base, s, "NVFP4 codes of whole blocks of 16 along K");
    shape[last] *= 2;
    LR_TRY(check_tensor(*s.weight_scale, {DType::kE4M3}, "F8_E4M3",
                        block_shape(shape, 1, kNvfp4Group),
                        fmt::format("blocks of 16 of {}", shape.to_string())));
    LR_TRY(check_one_value(*global));
    return StoredWeight{format, shape, codes, s.weight_scale, global, input};
}

} // namespace

std::string_view stored_format_name(StoredFormat format) {
    switch (format) {
    case StoredFormat::kPlain:
        return "plain";
    case StoredFormat::kFp8Block:
        return "fp8-block";
    case StoredFormat::kFp8Channel:
        return "fp8-channel";
    case StoredFormat::kFp8Tensor:
        return "fp8-tensor";
    case StoredFormat::kNvfp4ModelOpt:
        return "nvfp4-modelopt";
    case StoredFormat::kNvfp4Compressed:
        return "nvfp4-compressed";
    }
    return "unknown";
}

WeightSiblings find_siblings(const Checkpoint& checkpoint, std::string_view base) {
    auto find = [&](std::string_view suffix) {
        return checkpoint.find(fmt::format("{}{}", base, suffix));
    };
    WeightSiblings s;
    s.weight = find(".weight");
    if (s.weight == nullptr)
        s.weight = find("");
    s.weight_packed = find(".weight_packed");
    s.weight_scale = find(".weight_scale");
    s.weight_scale_inv = find(".weight_scale_inv");
    s.weight_scale_2 = find(".weight_scale_2");
    s.weight_global_scale = find(".weight_global_scale");
    s.input_scale = find(".input_scale");
    s.input_global_scale = find(".input_global_scale");
    return s;
}

Result<StoredWeight> detect_format(std::string_view base, const WeightSiblings& s) {
    if (s.weight == nullptr && s.weight_packed == nullptr)
        return fail(Code::kNotFound, "weight '{}': expected '{}.weight', which is not there", base,
                    base);
    if (s.weight_packed != nullptr) {
        if (s.weight != nullptr || s.weight_scale_2 != nullptr)
            return contradiction(base, s, "weight_packed without weight and weight_scale_2");
        return detect_nvfp4(base, s, StoredFormat::kNvfp4Compressed, s.weight_packed,
                            s.weight_global_scale, s.input_global_scale);
    }
    if (has_dtype(*s.weight, {DType::kU8}))
        return detect_nvfp4(base, s, StoredFormat::kNvfp4ModelOpt, s.weight, s.weight_scale_2,
                            s.input_scale);
    if (has_dtype(*s.weight, {DType::kE4M3}))
        return detect_fp8(base, s);
    if (!has_dtype(*s.weight, {DType::kBF16, DType::kF16, DType::kF32}))
        return contradiction(base, s, "a weight in BF16, F16, F32, F8_E4M3 or U8");
    if (any({s.weight_scale, s.weight_scale_inv, s.weight_scale_2, s.weight_global_scale}))
        return contradiction(base, s, "a plain weight without scales");
    return StoredWeight{StoredFormat::kPlain, s.weight->shape, s.weight};
}

} // namespace lr::checkpoint
