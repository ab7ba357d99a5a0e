// SPDX-License-Identifier: Apache-2.0
#include "model/synth_files.h"

#include "core/check.h"
#include "model/quantize_config.h"

#include <array>
#include <string_view>

namespace lr::model {
namespace {

struct AddedToken {
    std::string_view content;
    bool special;
};

// In the order of the released tokenizers, where they start at id 248044.
constexpr std::int64_t kReleasedBase = 248044;
constexpr std::int64_t kBytes = 256;
constexpr std::array kAdded = {
    AddedToken{"<|endoftext|>", true},      AddedToken{"<|im_start|>", true},
    AddedToken{"<|im_end|>", true},         AddedToken{"<|object_ref_start|>", true},
    AddedToken{"<|object_ref_end|>", true}, AddedToken{"<|box_start|>", true},
    AddedToken{"<|box_end|>", true},        AddedToken{"<|quad_start|>", true},
    AddedToken{"<|quad_end|>", true},       AddedToken{"<|vision_start|>", true},
    AddedToken{"<|vision_end|>", true},     AddedToken{"<|vision_pad|>", true},
    AddedToken{"<|image_pad|>", true},      AddedToken{"<|video_pad|>", true},
    AddedToken{"<tool_call>", false},       AddedToken{"</tool_call>", false},
    AddedToken{"<|fim_prefix|>", false},    AddedToken{"<|fim_middle|>", false},
    AddedToken{"<|fim_suffix|>", false},    AddedToken{"<|fim_pad|>", false},
    AddedToken{"<|repo_name|>", false},     AddedToken{"<|file_sep|>", false},
    AddedToken{"<tool_response>", false},   AddedToken{"</tool_response>", false},
    AddedToken{"<think>", false},           AddedToken{"</think>", false},
};
constexpr auto kAddedCount = static_cast<std::int64_t>(kAdded.size());
constexpr std::int64_t kEndOfText = 0, kEndOfTurn = 2; // places in kAdded

constexpr std::string_view kSplitRegex =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}|)"
    R"( ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr std::string_view kChatTemplate =
    "{%- for message in messages %}{{- '<|im_start|>' + message.role + '\\n' + message.content + "
    "'<|im_end|>' + '\\n' }}{%- endfor %}{%- if add_generation_prompt %}{{- "
    "'<|im_start|>assistant\\n' }}{%- endif %}";

// The byte alphabet: printable bytes are themselves, the others characters from U+0100 on.
std::vector<std::string> byte_tokens() {
    std::vector<std::string> tokens;
    std::uint32_t next = 256;
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
        const bool printable =
            (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
        const std::uint32_t point = printable ? byte : next++;
        if (point < 0x80)
            tokens.emplace_back(1, static_cast<char>(point));
        else
            tokens.push_back(
                {static_cast<char>(0xC0 | point >> 6), static_cast<char>(0x80 | (point & 0x3F))});
    }
    return tokens;
}

Json byte_level() {
    return Json::object({{"type", Json("ByteLevel")},
                         {"add_prefix_space", Json(false)},
                         {"trim_offsets", Json(false)},
                         {"use_regex", Json(false)}});
}

std::vector<JsonMember> added_token_members(const AddedToken& token) {
    return {{"content", Json(token.content)}, {"single_word", Json(false)},
            {"lstrip", Json(false)},          {"rstrip", Json(false)},
            {"normalized", Json(false)},      {"special", Json(token.special)}};
}

} // namespace

Json synth_config_json(const Model& model) {
    const Json plain = config_to_json(model.config());
    bool quantised = false;
    ModuleNames names;
    for (const Entry& entry : model.entries()) {
        quantised = quantised || entry.format == WeightFormat::kFp8Block;
        names.mtp = names.mtp || entry.mtp;
    }
    if (!quantised)
        return plain;
    std::vector<JsonMember> members = plain.as_object().members();
    members.push_back({"quantization_config", quantization_config({}, model, names)});
    return Json::object(std::move(members));
}

Result<SynthTokenizer> synth_tokenizer(std::int64_t vocab_size) {
    if (vocab_size < kBytes + kAddedCount)
        return fail(Code::kInvalidArgument,
                    "vocab_size: expected at least {} for a byte-level tokenizer with {} added "
                    "tokens, got {}",
                    kBytes + kAddedCount, kAddedCount, vocab_size);
    const std::int64_t base = vocab_size >= kReleasedBase + kAddedCount ? kReleasedBase : kBytes;
    return SynthTokenizer{base, base + kEndOfText, base + kEndOfTurn};
}

Json synth_tokenizer_json(const SynthTokenizer& tokenizer) {
    std::vector<JsonMember> vocab;
    const std::vector<std::string> bytes = byte_tokens();
    for (std::size_t byte = 0; byte < bytes.size(); ++byte)
        vocab.push_back({bytes[byte], Json(static_cast<std::int64_t>(byte))});
    JsonArray added;
    for (std::int64_t i = 0; i < kAddedCount; ++i) {
        const AddedToken& token = kAdded[static_cast<std::size_t>(i)];
        std::vector<JsonMember> members = added_token_members(token);
        members.insert(members.begin(), {"id", Json(tokenizer.added_base + i)});
        added.push_back(Json::object(std::move(members)));
        // In the vocabulary too: without that, other readers number added tokens without gaps.
        vocab.push_back({std::string(token.content), Json(tokenizer.added_base + i)});
    }
    JsonArray splitters;
    splitters.push_back(Json::object({{"type", Json("Split")},
                                      {"pattern", Json::object({{"Regex", Json(kSplitRegex)}})},
                                      {"behavior", Json("Isolated")},
                                      {"invert", Json(false)}}));
    splitters.push_back(byte_level());
    return Json::object({
        {"version", Json("1.0")},
        {"truncation", Json()},
        {"padding", Json()},
        {"added_tokens", Json(std::move(added))},
        {"normalizer", Json::object({{"type", Json("NFC")}})},
        {"pre_tokenizer",
         Json::object({{"type", Json("Sequence")}, {"pretokenizers", Json(std::move(splitters))}})},
        {"post_processor", byte_level()},
        {"decoder", byte_level()},
        {"model", Json::object({{"type", Json("BPE")},
                                {"dropout", Json()},
                                {"unk_token", Json()},
                                {"continuing_subword_prefix", Json()},
                                {"end_of_word_suffix", Json()},
                                {"fuse_unk", Json(false)},
                                {"byte_fallback", Json(false)},
                                {"ignore_merges", Json(false)},
                                {"vocab", Json::object(std::move(vocab))},
                                {"merges", Json(JsonArray{})}})},
    });
}

Json synth_tokenizer_config_json(const SynthTokenizer& tokenizer) {
    std::vector<JsonMember> added;
    for (std::int64_t i = 0; i < kAddedCount; ++i)
        added.push_back({std::to_string(tokenizer.added_base + i),
                         Json::object(added_token_members(kAdded[static_cast<std::size_t>(i)]))});
    return Json::object({
        {"tokenizer_class", Json("PreTrainedTokenizerFast")},
        {"add_bos_token", Json(false)},
        {"add_prefix_space", Json(false)},
        {"clean_up_tokenization_spaces", Json(false)},
        {"eos_token", Json(kAdded[kEndOfTurn].content)},
        {"pad_token", Json(kAdded[kEndOfText].content)},
        {"added_tokens_decoder", Json::object(std::move(added))},
        {"chat_template", Json(kChatTemplate)},
    });
}

Json synth_generation_config_json(const SynthTokenizer& tokenizer) {
    JsonArray eos;
    eos.emplace_back(tokenizer.end_of_turn);
    eos.emplace_back(tokenizer.end_of_text);
    return Json::object({
        {"bos_token_id", Json(tokenizer.end_of_text)},
        {"pad_token_id", Json(tokenizer.end_of_text)},
        {"eos_token_id", Json(std::move(eos))},
        {"do_sample", Json(true)},
        {"temperature", Json(0.6)},
        {"top_k", Json(20)},
        {"top_p", Json(0.95)},
    });
}

} // namespace lr::model
