// SPDX-License-Identifier: Apache-2.0
//
// cli/answer_json.h: answers as the JSON objects of the OpenAI API ("text_completion",
// "chat.completion"), with "timings" besides.
#pragma once

#include "cli/chat_session.h"
#include "core/json.h"

#include <string>
#include <vector>

namespace lr::cli {

struct AnswerTimes {
    std::int64_t prompt_tokens = 0, cached_tokens = 0, decode_steps = 0;
    double load_seconds = 0, prefill_seconds = 0, decode_seconds = 0;
};

struct CompletedText {
    std::string text;
    std::vector<std::int32_t> tokens;
    Finish finish = Finish::kLength;
    std::vector<engine::RowLogprobs> logprobs;
};

// {"id", "created", "object": "text_completion", "model", "choices": [{"index", "text",
// "token_ids", "finish_reason", "logprobs"}], "usage", "timings"}. logprobs is the API's legacy
// object; null where none.
Json completion_json(const std::string& model, const std::vector<CompletedText>& choices,
                     const AnswerTimes& times, const text::Tokenizer* tokenizer);

// {"id", "created", "object": "chat.completion", "model", "choices": [{"index", "message": {"role",
// "content", "reasoning_content", "tool_calls"}, "finish_reason", "logprobs"}], "usage",
// "timings"}. reasoning_content and tool_calls only where there are some. tool_calls holds complete
// calls; one that the end of the answer cut is "cut_tool_call": {"name", "arguments"} instead, its
// arguments closed into valid JSON. finish_reason is "tool_calls" where the model ended its answer
// and every call is complete.
Json chat_json(const std::string& model, const ChatResult& result, double load_seconds,
               const text::Tokenizer& tokenizer);

} // namespace lr::cli
