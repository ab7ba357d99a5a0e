// SPDX-License-Identifier: Apache-2.0
//
// text/answer.h: an answer's tokens to what a person or a program is shown, while they arrive.
//
// Tokens become whole characters (detokenizer.h), those are split into reasoning and content
// (reasoning.h), a stop string ends the content (stop_strings.h), and tool calls are taken out of
// it (tool_calls.h). A stop string acts on the content alone, never on reasoning.
#pragma once

#include "text/detokenizer.h"
#include "text/reasoning.h"
#include "text/stop_strings.h"
#include "text/tool_calls.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lr::text {

struct AnswerFormat {
    bool skip_special = true;          // control tokens add no text
    bool split_reasoning = true;       // false: everything is content, tags too
    bool in_reasoning = false;         // the prompt left <think> open
    const StopStrings* stop = nullptr; // nullptr: none
    const ToolSet* tools = nullptr;    // nullptr: calls are content like any other
};

struct AnswerDelta {
    std::string reasoning, content;
    std::vector<ToolCallEvent> calls = {}; // kCall, kArguments and kEnd, in order
};

class AnswerStream {
  public:
    // The tokenizer and what `format` points to must outlive this.
    AnswerStream(const Tokenizer& tokenizer, const AnswerFormat& format);
    AnswerStream(const AnswerStream&) = delete; // stop_ points to none_
    AnswerStream& operator=(const AnswerStream&) = delete;

    AnswerDelta push(std::int32_t id);
    // The end: what was held back. Nothing may be pushed afterwards.
    AnswerDelta finish();

    bool stopped() const { return stop_.stopped(); }

  private:
    AnswerDelta take(SplitText split);
    void take_events(const std::vector<ToolCallEvent>& events, AnswerDelta& delta) const;

    Detokenizer detokenizer_;
    std::optional<ReasoningSplitter> splitter_;
    StopStrings none_;
    StopMatcher stop_;
    std::optional<ToolCallParser> tools_;
};

} // namespace lr::text
