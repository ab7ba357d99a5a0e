// SPDX-License-Identifier: Apache-2.0
#include "cli/answer_json.h"

#include "text/unicode.h"

#include <algorithm>
#include <atomic>
#include <ctime>
#include <unistd.h>

namespace lr::cli {
namespace {

using Members = std::vector<JsonMember>;

Json number(std::int64_t value) {
    return Json(value);
}

std::string text_of(std::int32_t id, const text::Tokenizer* tokenizer) {
    return tokenizer ? text::replace_invalid_utf8(tokenizer->token_bytes(id)) : std::string();
}

std::int64_t code_points(std::string_view text) {
    return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; });
}

// "id" and "created" of an answer: clients ask for both. No two of one process are alike.
void add_identity(Members& members, std::string_view prefix) {
    static std::atomic<int> made = 0;
    const std::int64_t now = std::time(nullptr);
    members.push_back({"id", Json(fmt::format("{}-{:x}-{:x}-{}", prefix, now, getpid(), made++))});
    members.push_back({"created", number(now)});
}

Json usage(const AnswerTimes& times, std::int64_t completion) {
    return Json::object({{"prompt_tokens", number(times.prompt_tokens)},
                         {"completion_tokens", number(completion)},
                         {"total_tokens", number(times.prompt_tokens + completion)},
                         {"prompt_tokens_details",
                          Json::object({{"cached_tokens", number(times.cached_tokens)}})}});
}

Json timings(const AnswerTimes& times) {
    const auto rate = [](std::int64_t count, double seconds) {
        return Json(seconds > 0 ? static_cast<double>(count) / seconds : 0.0);
    };
    const std::int64_t fresh = times.prompt_tokens - times.cached_tokens;
    return Json::object(
        {{"load_ms", Json(1e3 * times.load_seconds)},
         {"prompt_n", number(fresh)},
         {"prompt_ms", Json(1e3 * times.prefill_seconds)},
         {"prompt_per_second", rate(fresh, times.prefill_seconds)},
         {"predicted_steps", number(times.decode_steps)},
         {"predicted_ms", Json(1e3 * times.decode_seconds)},
         {"predicted_steps_per_second", rate(times.decode_steps, times.decode_seconds)}});
}

Json ids_json(const std::vector<std::int32_t>& ids) {
    JsonArray array;
    for (std::int32_t id : ids)
        array.push_back(number(id));
    return Json(std::move(array));
}

// tokens[], token_logprobs[], top_logprobs[] (an object text -> log-probability a token),
// text_offset[].
Json legacy_logprobs(const std::vector<engine::RowLogprobs>& rows,
                     const text::Tokenizer* tokenizer) {
    if (rows.empty())
        return Json();
    JsonArray tokens, values, tops, offsets;
    std::int64_t offset = 0;
    for (const engine::RowLogprobs& row : rows) {
        const std::string text = text_of(row.token.id, tokenizer);
        tokens.emplace_back(text);
        values.emplace_back(row.token.logprob);
        offsets.push_back(number(offset));
        offset += code_points(text);
        Members top;
        for (const engine::TokenLogprob& other : row.top) {
            std::string name = text_of(other.id, tokenizer);
            const bool taken = std::any_of(top.begin(), top.end(), [&](const JsonMember& member) {
                return member.key == name;
            });
            if (name.empty() ||
                taken) // no tokenizer, or bytes of broken characters that look alike
                name = fmt::format("token_id:{}", other.id);
            top.push_back({std::move(name), Json(other.logprob)});
        }
        tops.push_back(Json::object(std::move(top)));
    }
    return Json::object({{"tokens", Json(std::move(tokens))},
                         {"token_logprobs", Json(std::move(values))},
                         {"top_logprobs", Json(std::move(tops))},
                         {"text_offset", Json(std::move(offsets))}});
}

Json token_json(const engine::TokenLogprob& token, const text::Tokenizer& tokenizer) {
    JsonArray bytes;
    for (char c : tokenizer.token_bytes(token.id))
        bytes.push_back(number(static_cast<unsigned char>(c)));
    return Json::object({{"token", Json(text_of(token.id, &tokenizer))},
                         {"logprob", Json(token.logprob)},
                         {"bytes", Json(std::move(bytes))}});
}

Json chat_logprobs(const std::vector<engine::RowLogprobs>& rows, const text::Tokenizer& tokenizer) {
    if (rows.empty())
        return Json();
    JsonArray content;
    for (const engine::RowLogprobs& row : rows) {
        JsonArray top;
        for (const engine::TokenLogprob& other : row.top)
            top.push_back(token_json(other, tokenizer));
        Members members = token_json(row.token, tokenizer).as_object().members();
        members.push_back({"top_logprobs", Json(std::move(top))});
        content.push_back(Json::object(std::move(members)));
    }
    return Json::object({{"content", Json(std::move(content))}});
}

Json function_json(const text::ToolAnswer::Call& call) {
    return Json::object({{"name", Json(call.name)}, {"arguments", Json(call.arguments)}});
}

Json message_json(const ChatAnswer& answer, std::int64_t choice) {
    Members message = {{"role", Json("assistant")}, {"content", Json(answer.answer.text)}};
    if (!answer.reasoning.empty())
        message.push_back({"reasoning_content", Json(answer.reasoning)});
    JsonArray calls;
    for (const text::ToolAnswer::Call& call : answer.answer.calls)
        if (call.complete)
            calls.push_back(
                Json::object({{"id", Json(fmt::format("call_{}_{}", choice, calls.size()))},
                              {"type", Json("function")},
                              {"function", function_json(call)}}));
        else
            message.push_back({"cut_tool_call", function_json(call)});
    if (!calls.empty())
        message.push_back({"tool_calls", Json(std::move(calls))});
    return Json::object(std::move(message));
}

Json answer_json(const char* object, std::string_view prefix, const std::string& model,
                 JsonArray choices, const AnswerTimes& times, std::int64_t tokens) {
    Members members;
    add_identity(members, prefix);
    members.push_back({"object", Json(object)});
    members.push_back({"model", Json(model)});
    members.push_back({"choices", Json(std::move(choices))});
    members.push_back({"usage", usage(times, tokens)});
    members.push_back({"timings", timings(times)});
    return Json::object(std::move(members));
}

} // namespace

Json completion_json(const std::string& model, const std::vector<CompletedText>& choices,
                     const AnswerTimes& times, const text::Tokenizer* tokenizer) {
    JsonArray list;
    std::int64_t tokens = 0;
    for (const CompletedText& choice : choices) {
        tokens += std::ssize(choice.tokens);
        list.push_back(Json::object({{"index", number(std::ssize(list))},
                                     {"text", Json(choice.text)},
                                     {"token_ids", ids_json(choice.tokens)},
                                     {"finish_reason", Json(finish_name(choice.finish))},
                                     {"logprobs", legacy_logprobs(choice.logprobs, tokenizer)}}));
    }
    return answer_json("text_completion", "cmpl", model, std::move(list), times, tokens);
}

Json chat_json(const std::string& model, const ChatResult& result, double load_seconds,
               const text::Tokenizer& tokenizer) {
    JsonArray list;
    std::int64_t tokens = 0;
    for (const ChatAnswer& answer : result.choices) {
        tokens += std::ssize(answer.tokens);
        const bool calls =
            answer.finish == Finish::kEnd && !answer.answer.calls.empty() &&
            std::all_of(answer.answer.calls.begin(), answer.answer.calls.end(),
                        [](const text::ToolAnswer::Call& call) { return call.complete; });
        list.push_back(Json::object(
            {{"index", number(std::ssize(list))},
             {"message", message_json(answer, std::ssize(list))},
             {"finish_reason", Json(calls ? "tool_calls" : finish_name(answer.finish))},
             {"logprobs", chat_logprobs(answer.logprobs, tokenizer)}}));
    }
    const AnswerTimes times{.prompt_tokens = result.prompt_tokens,
                            .cached_tokens = result.cached_tokens,
                            .decode_steps = result.decode_steps,
                            .load_seconds = load_seconds,
                            .prefill_seconds = result.prefill_seconds,
                            .decode_seconds = result.decode_seconds};
    return answer_json("chat.completion", "chatcmpl", model, std::move(list), times, tokens);
}

} // namespace lr::cli
