// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/quant_format.h"

namespace lr::checkpoint {
namespace {

bool is_fp8(StoredFormat format) {
    return format == StoredFormat::kFp8Block || format == StoredFormat::kFp8Channel ||
           format == StoredFormat::kFp8Tensor;
}

bool method_allows(const QuantizationConfig& declared, StoredFormat format) {
    if (format == StoredFormat::kPlain)
        return true;
    if (declared.method == "fp8")
        return declared.block ? format == StoredFormat::kFp8Block : is_fp8(format);
    if (declared.method == "modelopt")
        return format == StoredFormat::kNvfp4ModelOpt || is_fp8(format);
    if (declared.method == "compressed-tensors")
        return format == StoredFormat::kNvfp4Compressed || is_fp8(format);
    return false;
}

Result<QuantizationConfig> read_declared(const JsonCursor& field) {
    QuantizationConfig declared;
    LR_TRY_ASSIGN(declared.method, field.required_string("quant_method"));
    for (const char* key : {"fmt", "quant_algo", "format"}) {
        if (declared.scheme.empty()) {
            LR_TRY_ASSIGN(declared.scheme, field.optional_string(key, ""));
        }
    }
    if (field.has("weight_block_size")) {
        LR_TRY_ASSIGN(const std::vector<std::int64_t> block,
                      field.required_ints("weight_block_size", 1));
        if (block.size() != 2)
            return field.member("weight_block_size").fail_expected("two sizes, as [128, 128]");
        declared.block = {block[0], block[1]};
    }
    for (const char* key : {"modules_to_not_convert", "ignore", "exclude_modules"}) {
        if (!field.has(key))
            continue;
        LR_TRY_ASSIGN(std::vector<std::string> names, field.required_strings(key));
        declared.excluded.insert(declared.excluded.end(), names.begin(), names.end());
    }
    return declared;
}

} // namespace

Result<std::optional<QuantizationConfig>> read_quantization_config(const JsonCursor& config) {
    std::optional<QuantizationConfig> none;
    LR_TRY_ASSIGN(std::optional<JsonCursor> field, config.optional_object("quantization_config"));
    if (!field) {
        LR_TRY_ASSIGN(const std::optional<JsonCursor> text, config.optional_object("text_config"));
        if (!text)
            return none;
        LR_TRY_ASSIGN(field, text->optional_object("quantization_config"));
    }
    if (!field)
        return none;
    LR_TRY_ASSIGN(QuantizationConfig declared, read_declared(*field));
    return std::optional<QuantizationConfig>(std::move(declared));
}

std::vector<std::string>
quantization_disagreements(const std::optional<QuantizationConfig>& declared,
                           const std::map<StoredFormat, std::int64_t>& found) {
    std::vector<std::string> sentences;
    std::int64_t quantized = 0;
    for (const auto& [format, count] : found) {
        if (format == StoredFormat::kPlain || count == 0)
            continue;
        quantized += count;
        if (!declared)
            sentences.push_back(
                fmt::format("config.json declares no quantization, but {} weights are stored as {}",
                            count, stored_format_name(format)));
        else if (!method_allows(*declared, format))
            sentences.push_back(fmt::format(
                "config.json declares quantization '{}'{}, but {} weights are stored as {}",
                declared->method, declared->block ? " in blocks" : "", count,
                stored_format_name(format)));
    }
    if (declared && quantized == 0)
        sentences.push_back(
            fmt::format("config.json declares quantization '{}', but every weight is stored plain",
                        declared->method));
    if (declared && declared->block && *declared->block != std::array<std::int64_t, 2>{128, 128})
        sentences.push_back(
            fmt::format("config.json declares blocks of {}x{}, but only 128x128 is known",
                        (*declared->block)[0], (*declared->block)[1]));
    return sentences;
}

} // namespace lr::checkpoint
