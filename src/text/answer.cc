// SPDX-License-Identifier: Apache-2.0
#include "text/answer.h"

#include <utility>

namespace lr::text {

AnswerStream::AnswerStream(const Tokenizer& tokenizer, const AnswerFormat& format)
    : detokenizer_(tokenizer, format.skip_special), stop_(format.stop ? *format.stop : none_) {
    if (format.split_reasoning)
        splitter_.emplace(reasoning_format(tokenizer), format.in_reasoning);
    if (format.tools)
        tools_.emplace(*format.tools);
}

AnswerDelta AnswerStream::push(std::int32_t id) {
    std::string text = detokenizer_.push(id);
    return take(splitter_ ? splitter_->push(id, text) : SplitText{"", std::move(text)});
}

AnswerDelta AnswerStream::finish() {
    std::string text = detokenizer_.flush();
    SplitText split{"", text};
    if (splitter_) {
        split = splitter_->push(text);
        SplitText rest = splitter_->flush();
        split.reasoning += rest.reasoning;
        split.content += rest.content;
    }
    AnswerDelta delta = take(std::move(split));
    const std::string held = stop_.flush();
    if (!tools_) {
        delta.content += held;
        return delta;
    }
    take_events(tools_->push(held), delta);
    take_events(tools_->finish(), delta);
    return delta;
}

AnswerDelta AnswerStream::take(SplitText split) {
    AnswerDelta delta;
    if (stopped())
        return delta; // reasoning cannot follow, and nothing else may
    delta.reasoning = std::move(split.reasoning);
    std::string content = stop_.push(split.content);
    if (tools_)
        take_events(tools_->push(content), delta);
    else
        delta.content = std::move(content);
    return delta;
}

void AnswerStream::take_events(const std::vector<ToolCallEvent>& events, AnswerDelta& delta) const {
    for (const ToolCallEvent& event : events)
        if (event.kind == ToolCallEvent::Kind::kText)
            delta.content += event.text;
        else
            delta.calls.push_back(event);
}

} // namespace lr::text
