// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/quant_format.h"

#include "numerics/convert.h"
#include "numerics/quantize.h"

#include <algorithm>
#include <array>

namespace lr::checkpoint {
namespace {

using numerics::kFp8Block;
using numerics::kNvfp4Block;

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

Status check_dtype(const TensorInfo& tensor, std::initializer_list<DType> dtypes,
                   std::string_view dtype_names) {
    if (has_dtype(tensor, dtypes))
        return {};
    return fail(Code::kInvalidFile, "tensor '{}': expected dtype {}, got {}", tensor.name,
                dtype_names, tensor.file_dtype);
}

Status check_tensor(const TensorInfo& tensor, std::initializer_list<DType> dtypes,
                    std::string_view dtype_names, const Shape& shape, std::string_view why) {
    LR_TRY(check_dtype(tensor, dtypes, dtype_names));
    if (tensor.shape != shape)
        return fail(Code::kInvalidFile, "tensor '{}': expected shape {} ({}), got {}", tensor.name,
                    shape.to_string(), why, tensor.shape.to_string());
    return {};
}

// A value for the whole weight; of a stack also one a matrix, or `halves`: one for each half of it.
bool factor_shaped(const Shape& shape, const Shape& weight, bool halves) {
    if (shape.count() == 1)
        return true;
    if (weight.rank() != 3 || shape.rank() < 1 || shape[0] != weight[0])
        return false;
    return shape.count() == weight[0] || (halves && shape == Shape{weight[0], 2});
}

Status check_factor(const TensorInfo& tensor, const Shape& weight, bool halves) {
    const bool type = has_dtype(tensor, {DType::kF32, DType::kBF16});
    if (type && factor_shaped(tensor.shape, weight, halves))
        return {};
    if (weight.rank() != 3)
        return fail(Code::kInvalidFile, "tensor '{}': expected one F32 or BF16 value, got {}",
                    tensor.name, tensor.describe());
    return fail(Code::kInvalidFile,
                "tensor '{}': expected F32 or BF16 [{}]{} beside a stack {}, got {}", tensor.name,
                weight[0], halves ? fmt::format(", [{}, 2]", weight[0]) : "", weight.to_string(),
                tensor.describe());
}

// Names and types of what was found, for messages.
std::string describe_siblings(const WeightSiblings& s) {
    std::string text;
    for (const TensorInfo* tensor :
         {s.weight, s.weight_packed, s.weight_scale, s.weight_scale_inv, s.weight_scale_2,
          s.weight_global_scale, s.input_scale, s.input_global_scale, s.again})
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

Result<StoredWeight> detect_fp8_block(std::string_view base, const WeightSiblings& s,
                                      const TensorInfo& scale) {
    const TensorInfo& weight = *s.weight;
    LR_TRY(check_tensor(scale, {DType::kF32, DType::kBF16}, "BF16 or F32",
                        block_shape(weight.shape, kFp8Block, kFp8Block),
                        fmt::format("128x128 blocks of {}", weight.shape.to_string())));
    if (s.input_scale != nullptr)
        return contradiction(base, s,
                             "an FP8 block weight without input_scale: its activations have a "
                             "scale for each 128 channels, made at run time");
    return StoredWeight{StoredFormat::kFp8Block, weight.shape, &weight, &scale};
}

// One scale a row: [.., N] or [.., N, 1].
bool channel_shaped(const Shape& scale, const Shape& weight) {
    Shape rows;
    for (int i = 0; i + 1 < weight.rank(); ++i)
        rows.push_back(weight[i]);
    if (scale == rows)
        return true;
    rows.push_back(1);
    return scale == rows;
}

Result<StoredWeight> detect_fp8(std::string_view base, const WeightSiblings& s) {
    const TensorInfo& weight = *s.weight;
    const Shape& shape = weight.shape;
    if (shape.rank() != 2 && shape.rank() != 3)
        return contradiction(base, s, "an FP8 weight [N, K] or [E, N, K]");
    if (any({s.weight_packed, s.weight_scale_2, s.weight_global_scale, s.input_global_scale}) ||
        (s.weight_scale != nullptr) == (s.weight_scale_inv != nullptr))
        return contradiction(base, s,
                             "an F8_E4M3 weight with either weight_scale_inv or weight_scale");
    if (s.weight_scale_inv != nullptr)
        return detect_fp8_block(base, s, *s.weight_scale_inv);

    const TensorInfo& scale = *s.weight_scale;
    if (s.input_scale != nullptr)
        LR_TRY(check_factor(*s.input_scale, shape, false));
    if (channel_shaped(scale.shape, shape)) {
        LR_TRY(check_dtype(scale, {DType::kF32, DType::kBF16}, "BF16 or F32"));
        return StoredWeight{
            StoredFormat::kFp8Channel, shape, &weight, &scale, nullptr, s.input_scale};
    }
    if (scale.shape == block_shape(shape, kFp8Block, kFp8Block))
        return detect_fp8_block(base, s, scale);
    if (factor_shaped(scale.shape, shape, true)) {
        LR_TRY(check_factor(scale, shape, true));
        return StoredWeight{
            StoredFormat::kFp8Tensor, shape, &weight, nullptr, &scale, s.input_scale};
    }
    return fail(Code::kInvalidFile,
                "tensor '{}': expected a scale of {} per channel, {} per 128x128 block or one "
                "value for weight {}, got {}",
                scale.name, block_shape(shape, 1, shape[shape.rank() - 1]).to_string(),
                block_shape(shape, kFp8Block, kFp8Block).to_string(), shape.to_string(),
                scale.shape.to_string());
}

// ModelOpt and compressed-tensors differ in names, and in the direction of the factors.
Result<StoredWeight> detect_nvfp4(std::string_view base, const WeightSiblings& s,
                                  StoredFormat format) {
    const bool compressed = format == StoredFormat::kNvfp4Compressed;
    const TensorInfo* codes = compressed ? s.weight_packed : s.weight;
    const TensorInfo* factor = compressed ? s.weight_global_scale : s.weight_scale_2;
    const TensorInfo* input = compressed ? s.input_global_scale : s.input_scale;
    if (s.weight_scale == nullptr || factor == nullptr ||
        any({s.weight_scale_inv, compressed ? s.weight_scale_2 : s.weight_global_scale,
             compressed ? s.input_scale : s.input_global_scale}))
        return contradiction(base, s,
                             compressed
                                 ? "weight_packed with weight_scale, weight_global_scale and at "
                                   "most input_global_scale"
                                 : "a U8 weight with weight_scale, weight_scale_2 and at most "
                                   "input_scale");
    const int rank = codes->shape.rank();
    if (!has_dtype(*codes, {DType::kU8}) || (rank != 2 && rank != 3))
        return contradiction(base, s, "NVFP4 codes in U8 [N, K/2] or [E, N, K/2]");
    Shape shape = codes->shape;
    if (shape[rank - 1] % (kNvfp4Block / 2) != 0 || shape[rank - 1] > INT64_MAX / 2)
        return contradiction(base, s, "NVFP4 codes of whole blocks of 16 along K");
    shape[rank - 1] *= 2;
    LR_TRY(check_tensor(*s.weight_scale, {DType::kE4M3}, "F8_E4M3",
                        block_shape(shape, 1, kNvfp4Block),
                        fmt::format("blocks of 16 of {}", shape.to_string())));
    LR_TRY(check_factor(*factor, shape, true));
    if (input != nullptr)
        LR_TRY(check_factor(*input, shape, false));
    return StoredWeight{format, shape, codes, s.weight_scale, factor, input};
}

// The spellings of each sibling: after X, or after a stack's X.
struct Spelling {
    const TensorInfo* WeightSiblings::*sibling;
    std::string_view suffix;
};
constexpr std::array kSpellings = {
    Spelling{&WeightSiblings::weight, ""},
    Spelling{&WeightSiblings::weight, ".weight"},
    Spelling{&WeightSiblings::weight_packed, ".weight_packed"},
    Spelling{&WeightSiblings::weight_packed, "_weight_packed"},
    Spelling{&WeightSiblings::weight_packed, "_packed"},
    Spelling{&WeightSiblings::weight_scale, ".weight_scale"},
    Spelling{&WeightSiblings::weight_scale, "_weight_scale"},
    Spelling{&WeightSiblings::weight_scale, "_scale"},
    Spelling{&WeightSiblings::weight_scale_inv, ".weight_scale_inv"},
    Spelling{&WeightSiblings::weight_scale_inv, "_weight_scale_inv"},
    Spelling{&WeightSiblings::weight_scale_inv, "_scale_inv"},
    Spelling{&WeightSiblings::weight_scale_2, ".weight_scale_2"},
    Spelling{&WeightSiblings::weight_scale_2, "_weight_scale_2"},
    Spelling{&WeightSiblings::weight_scale_2, "_scale_2"},
    Spelling{&WeightSiblings::weight_global_scale, ".weight_global_scale"},
    Spelling{&WeightSiblings::weight_global_scale, "_weight_global_scale"},
    Spelling{&WeightSiblings::weight_global_scale, "_global_scale"},
    Spelling{&WeightSiblings::input_scale, ".input_scale"},
    Spelling{&WeightSiblings::input_scale, "_input_scale"},
    Spelling{&WeightSiblings::input_global_scale, ".input_global_scale"},
    Spelling{&WeightSiblings::input_global_scale, "_input_global_scale"},
};

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

numerics::WeightFormat weight_format(StoredFormat format) {
    switch (format) {
    case StoredFormat::kPlain:
        break;
    case StoredFormat::kFp8Block:
        return numerics::WeightFormat::kFp8Block;
    case StoredFormat::kFp8Channel:
        return numerics::WeightFormat::kFp8Channel;
    case StoredFormat::kFp8Tensor:
        return numerics::WeightFormat::kFp8Tensor;
    case StoredFormat::kNvfp4ModelOpt:
    case StoredFormat::kNvfp4Compressed:
        return numerics::WeightFormat::kNvfp4;
    }
    return numerics::WeightFormat::kPlain;
}

std::string_view loadable_formats() {
    return "BF16, F16, F32; FP8 E4M3 per 128x128 block, channel or tensor; NVFP4 of ModelOpt "
           "(W4A4, W4A16) and compressed-tensors";
}

// Names are sorted: all siblings of X follow one another from X on.
WeightSiblings find_siblings(const Checkpoint& checkpoint, std::string_view base) {
    WeightSiblings s;
    const std::vector<TensorInfo>& tensors = checkpoint.tensors();
    auto tensor = std::lower_bound(
        tensors.begin(), tensors.end(), base,
        [](const TensorInfo& info, std::string_view name) { return info.name < name; });
    for (; tensor != tensors.end() && tensor->name.starts_with(base); ++tensor)
        for (const Spelling& spelling : kSpellings)
            if (tensor->name.substr(base.size()) == spelling.suffix) {
                if (s.*spelling.sibling != nullptr)
                    s.again = &*tensor;
                else
                    s.*spelling.sibling = &*tensor;
            }
    return s;
}

Result<StoredWeight> detect_format(std::string_view base, const WeightSiblings& s) {
    if (s.weight == nullptr && s.weight_packed == nullptr)
        return fail(Code::kNotFound, "weight '{}': expected '{}.weight', which is not there", base,
                    base);
    if (s.again != nullptr)
        return contradiction(base, s, "each of its tensors under one name");
    if (s.weight_packed != nullptr) {
        if (s.weight != nullptr || s.weight_scale_2 != nullptr)
            return contradiction(base, s, "weight_packed without weight and weight_scale_2");
        return detect_nvfp4(base, s, StoredFormat::kNvfp4Compressed);
    }
    if (has_dtype(*s.weight, {DType::kU8}))
        return detect_nvfp4(base, s, StoredFormat::kNvfp4ModelOpt);
    if (has_dtype(*s.weight, {DType::kE4M3}))
        return detect_fp8(base, s);
    if (!has_dtype(*s.weight, {DType::kBF16, DType::kF16, DType::kF32}))
        return contradiction(base, s, "a weight in BF16, F16, F32, F8_E4M3 or U8");
    if (any({s.weight_scale, s.weight_scale_inv, s.weight_scale_2, s.weight_global_scale,
             s.input_scale, s.input_global_scale}))
        return contradiction(base, s, "a plain weight without scales");
    return StoredWeight{StoredFormat::kPlain, s.weight->shape, s.weight};
}

std::int64_t StoredWeight::factors_per_matrix() const {
    const std::int64_t stack = std::max<std::int64_t>(matrices(), 1);
    return factor != nullptr && factor->shape.count() > stack ? factor->shape.count() / stack : 1;
}

float StoredWeight::decode_multiplier(float stored) const {
    return format == StoredFormat::kNvfp4Compressed
               ? numerics::DecodeScale(numerics::EncodeScale(stored)).value
               : stored;
}

float StoredWeight::decode_factor(std::int64_t matrix, std::int64_t half) const {
    if (factor == nullptr)
        return 1.0f;
    const bool one = factor->shape.count() == 1;
    return decode_multiplier(float_at(*factor, one ? 0 : matrix * factors_per_matrix() + half));
}

float float_at(const TensorInfo& tensor, std::int64_t i) {
    const DType dtype = tensor.dtype.value_or(DType::kF32);
    float value = 0;
    numerics::decode_to_f32(dtype, tensor.data + dtype_bytes(dtype, i), 1, &value);
    return value;
}

} // namespace lr::checkpoint
