// SPDX-License-Identifier: Apache-2.0
#include "text/tool_calls.h"

#include "core/check.h"

#include <utility>

namespace lr::text {

namespace {

constexpr std::string_view kOpenBlock = "<tool_call>", kCloseBlock = "</tool_call>",
                           kFunction = "<function=", kCloseFunction = "</function>",
                           kParameter = "<parameter=", kCloseParameter = "</parameter>";
constexpr std::string_view kBlank = " \t\r\n";

// Bounds on what is looked at again with every push, so that the time stays linear.
constexpr std::size_t kMaxNameBytes = 256;
constexpr std::size_t kMaxBlankBytes = 64;

std::string_view unquoted(std::string_view name) {
    const std::size_t begin = name.find_first_not_of(kBlank);
    if (begin == std::string_view::npos)
        return {};
    name = name.substr(begin, name.find_last_not_of(kBlank) - begin + 1);
    const char quote = name.front();
    if (name.size() >= 2 && (quote == '"' || quote == '\'') && name.back() == quote)
        name = name.substr(1, name.size() - 2);
    return name;
}

} // namespace

std::vector<ToolCallEvent> ToolCallParser::push(std::string_view text) {
    LR_CHECK(!ended_);
    buffer_.erase(0, at_);
    at_ = 0;
    buffer_ += text;
    run();
    return std::exchange(events_, {});
}

std::vector<ToolCallEvent> ToolCallParser::finish() {
    LR_CHECK(!ended_);
    ended_ = true;
    run();
    if (state_ == State::kValue)
        end_value();
    if (in_call_)
        end_call(false);
    if (!behind_call_)
        emit(ToolCallEvent::Kind::kText, std::exchange(blank_, {}));
    return std::exchange(events_, {});
}

void ToolCallParser::run() {
    while (at_ < buffer_.size() && step())
        ;
}

bool ToolCallParser::step() {
    switch (state_) {
    case State::kTags:
        return step_tags();
    case State::kOpened:
        return step_opened();
    case State::kValue:
        return step_value();
    case State::kJson:
        return step_json();
    }
    return false;
}

ToolCallParser::Found ToolCallParser::look(std::size_t at, std::string_view wanted) const {
    const std::string_view rest = std::string_view(buffer_).substr(at);
    if (rest.starts_with(wanted))
        return Found::kYes;
    return !ended_ && wanted.starts_with(rest) ? Found::kMore : Found::kNo;
}

// "<function=" or "<parameter=", a name without line feed or "<", and ">".
ToolCallParser::Tag ToolCallParser::look_named(std::size_t at, std::string_view prefix) const {
    const Found begun = look(at, prefix);
    if (begun != Found::kYes)
        return {begun, 0, {}};
    const std::string_view rest = std::string_view(buffer_).substr(at + prefix.size());
    const std::size_t end = rest.substr(0, kMaxNameBytes + 1).find_first_of(">\n<");
    if (end == std::string_view::npos)
        return {ended_ || rest.size() > kMaxNameBytes ? Found::kNo : Found::kMore, 0, {}};
    const std::string_view name = unquoted(rest.substr(0, end));
    if (rest[end] != '>' || name.empty())
        return {Found::kNo, 0, {}};
    return {Found::kYes, at + prefix.size() + end + 1, std::string(name)};
}

ToolCallParser::Found ToolCallParser::look_behind(std::size_t at,
                                                  std::initializer_list<std::string_view> tags,
                                                  bool or_end) const {
    const std::size_t limit = std::min(buffer_.size(), at + kMaxBlankBytes + 1);
    while (at < limit && kBlank.find(buffer_[at]) != std::string_view::npos)
        ++at;
    if (at == buffer_.size())
        return !ended_ ? Found::kMore : or_end ? Found::kYes : Found::kNo;
    Found best = Found::kNo;
    for (std::string_view tag : tags)
        best = std::max(best, look(at, tag));
    return best;
}

// Outside of calls: text, and tags that open or close a block or begin a call.
ToolCallParser::Found ToolCallParser::outer_tag() {
    const Found open = look(at_, kOpenBlock);
    if (open == Found::kYes) {
        state_ = State::kOpened;
        scan_ = kOpenBlock.size();
        return open;
    }
    const Found close = in_block_ ? look(at_, kCloseBlock) : Found::kNo;
    if (close == Found::kYes) {
        in_block_ = false;
        blank_.clear();
        at_ += kCloseBlock.size();
        return close;
    }
    Tag function = look_named(at_, kFunction);
    if (function.found == Found::kYes && (in_block_ || tools_->has(function.name))) {
        at_ = function.end;
        begin_call(std::move(function.name));
        return Found::kYes;
    }
    return std::max({open, close, function.found == Found::kMore ? Found::kMore : Found::kNo});
}

// Between the parameters of a call. Tags that end it are left for outer_tag().
ToolCallParser::Found ToolCallParser::inner_tag() {
    Tag parameter = look_named(at_, kParameter);
    if (parameter.found == Found::kYes) {
        if (given_.count(parameter.name) > 0)
            return Found::kNo;
        at_ = parameter.end;
        begin_value(std::move(parameter.name));
        return Found::kYes;
    }
    const Found close = look(at_, kCloseFunction);
    if (close == Found::kYes) {
        at_ += kCloseFunction.size();
        end_call(true);
        return close;
    }
    const Found next =
        std::max({look(at_, kCloseBlock), look(at_, kOpenBlock), look_named(at_, kFunction).found});
    if (next == Found::kYes)
        end_call(true);
    return std::max({parameter.found, close, next});
}

bool ToolCallParser::step_tags() {
    const std::size_t tag = std::min(buffer_.find('<', at_), buffer_.size());
    text(std::string_view(buffer_).substr(at_, tag - at_));
    at_ = tag;
    if (at_ == buffer_.size())
        return false;
    const Found found = in_call_ ? inner_tag() : outer_tag();
    if (found == Found::kNo)
        text(std::string_view(buffer_).substr(at_++, 1));
    return found != Found::kMore;
}

// Behind <tool_call>: a function, a JSON object, or no call at all.
bool ToolCallParser::step_opened() {
    while (at_ + scan_ < buffer_.size() &&
           kBlank.find(buffer_[at_ + scan_]) != std::string_view::npos)
        ++scan_;
    if (at_ + scan_ == buffer_.size()) {
        if (!ended_)
            return false;
        give_up_block();
        return true;
    }
    if (buffer_[at_ + scan_] == '{') {
        state_ = State::kJson;
        json_ = JsonExtent("arguments");
        return true;
    }
    Tag function = look_named(at_ + scan_, kFunction);
    if (function.found == Found::kYes) {
        at_ = function.end;
        begin_call(std::move(function.name));
    } else if (function.found == Found::kNo) {
        give_up_block();
    }
    return function.found != Found::kMore;
}

// The tag is text; what follows it is looked at afresh.
void ToolCallParser::give_up_block() {
    text(std::string_view(buffer_).substr(at_, kOpenBlock.size()));
    at_ += kOpenBlock.size();
    state_ = State::kTags;
}

// The arguments are handed on as they stand in the text. An object that is no call is text to its
// end, and one that does not end is text to the end of it all: looking into it for further calls
// could take quadratic time.
bool ToolCallParser::step_json() {
    const std::string_view block = std::string_view(buffer_).substr(at_);
    const std::string_view json = block.substr(scan_);
    const bool closed = json_.scan(json);
    if (!closed && !ended_)
        return false;
    state_ = State::kTags;
    const std::size_t end = closed ? scan_ + json_.end() : block.size();
    if (!closed || !take_json_call(json.substr(0, json_.end()), json_.member(json)))
        text(block.substr(0, end));
    at_ += end;
    return true;
}

// {"name": string, "arguments": object, or a string that holds one}; without arguments, {}.
bool ToolCallParser::take_json_call(std::string_view json, std::string_view arguments) {
    const Result<Json> call = parse_json(json, "");
    if (!call)
        return false;
    const Json* name = call->find("name");
    if (name == nullptr || !name->is_string() || name->as_string().empty())
        return false;
    std::string text = "{}";
    if (const Json* given = call->find("arguments")) {
        text = std::string(given->is_string() ? std::string_view(given->as_string()) : arguments);
        const Result<Json> object = parse_json(text, "");
        if (!object || !object->is_object())
            return false;
    }
    begin_call(name->as_string());
    any_member_ = true;
    const std::size_t begin = text.find('{'), end = text.rfind('}');
    emit(ToolCallEvent::Kind::kArguments, std::string_view(text).substr(begin, end - begin));
    end_call(true);
    return true;
}

// Whether a tag at `at` ends the value.
ToolCallParser::Found ToolCallParser::value_end(std::size_t at, bool line_start) const {
    const Found parameter = look(at, kCloseParameter);
    if (parameter == Found::kYes)
        return parameter;
    Found function = look(at, kCloseFunction);
    if (function == Found::kYes)
        function =
            look_behind(at + kCloseFunction.size(), {kCloseBlock, kOpenBlock, kFunction}, true);
    Found close = look(at, kCloseBlock);
    if (close == Found::kYes && !line_start)
        close = look_behind(at + kCloseBlock.size(), {kOpenBlock}, true);
    Found best = std::max({parameter, function, close});
    if (!line_start)
        return best;
    const Tag next = look_named(at, kParameter);
    if (next.found != Found::kYes ||
        (given_.count(next.name) == 0 && tools_->may_have(function_, next.name)))
        best = std::max(best, next.found);
    Found open = look(at, kOpenBlock);
    if (open == Found::kYes)
        open = look_behind(at + kOpenBlock.size(), {kFunction}, false);
    return std::max(best, open);
}

bool ToolCallParser::step_value() {
    if (std::exchange(at_first_byte_, false) && buffer_[at_] == '\n') {
        ++at_;
        return true;
    }
    const std::size_t next = std::min(buffer_.find_first_of("\n<", at_), buffer_.size());
    if (next > at_) {
        add_to_value(std::string_view(buffer_).substr(at_, next - at_));
        at_ = next;
        at_line_start_ = false;
        return true;
    }
    // A line feed before the tag that ends the value goes with the tag.
    const bool line_feed = buffer_[at_] == '\n';
    const std::size_t tag = at_ + (line_feed ? 1 : 0);
    Found end = Found::kNo;
    if (tag == buffer_.size())
        end = ended_ ? Found::kYes : Found::kMore;
    else if (buffer_[tag] == '<')
        end = value_end(tag, line_feed || at_line_start_);
    if (end == Found::kNo) {
        const std::size_t done = tag < buffer_.size() && buffer_[tag] == '<' ? tag + 1 : tag;
        add_to_value(std::string_view(buffer_).substr(at_, done - at_));
        at_ = done;
        at_line_start_ = false;
    } else if (end == Found::kYes) {
        at_ = tag;
        if (look(at_, kCloseParameter) == Found::kYes)
            at_ += kCloseParameter.size();
        end_value();
    }
    return end != Found::kMore;
}

void ToolCallParser::begin_call(std::string name) {
    blank_.clear();
    in_call_ = in_block_ = behind_call_ = true;
    any_member_ = false;
    state_ = State::kTags;
    function_ = std::move(name);
    given_.clear();
    ++calls_;
    emit(ToolCallEvent::Kind::kCall, function_);
}

void ToolCallParser::end_call(bool complete) {
    blank_.clear();
    emit(ToolCallEvent::Kind::kArguments, any_member_ ? "}" : "{}");
    emit(ToolCallEvent::Kind::kEnd, "");
    events_.back().complete = complete;
    in_call_ = false;
}

void ToolCallParser::begin_value(std::string name) {
    blank_.clear();
    state_ = State::kValue;
    types_ = tools_->types(function_, name);
    given_.insert(name);
    parameter_ = std::move(name);
    value_.clear();
    streams_ = false;
    at_first_byte_ = at_line_start_ = true;
    if (types_ == kStringType)
        open_string();
}

void ToolCallParser::begin_member(std::string_view name) {
    emit(ToolCallEvent::Kind::kArguments, any_member_ ? "," : "{");
    emit(ToolCallEvent::Kind::kArguments, json_quote(name) + ":");
    any_member_ = true;
}

void ToolCallParser::open_string() {
    begin_member(parameter_);
    emit(ToolCallEvent::Kind::kArguments, "\"");
    streams_ = true;
}

void ToolCallParser::add_to_value(std::string_view text) {
    if (!streams_) {
        value_ += text;
        // A string or null: a string as soon as it cannot be the word any more.
        constexpr std::size_t kLongestWord = 4;
        if (types_ != (kStringType | kNullType) || value_.size() <= kLongestWord)
            return;
        open_string();
        text = value_;
    }
    std::string piece;
    append_json_escaped(piece, text);
    emit(ToolCallEvent::Kind::kArguments, piece);
}

void ToolCallParser::end_value() {
    state_ = State::kTags;
    if (streams_) {
        emit(ToolCallEvent::Kind::kArguments, "\"");
        return;
    }
    const std::optional<std::string> json = json_of_text(value_, types_);
    if (!json)
        return;
    begin_member(parameter_);
    emit(ToolCallEvent::Kind::kArguments, *json);
}

// White space is held until text follows it. Behind a call it is kept only between text and text.
void ToolCallParser::text(std::string_view text) {
    const std::size_t last = text.find_last_not_of(kBlank);
    if (last == std::string_view::npos) {
        blank_ += text;
        return;
    }
    if (any_text_ || calls_ == 0)
        emit(ToolCallEvent::Kind::kText, blank_);
    else
        text.remove_prefix(text.find_first_not_of(kBlank));
    const std::size_t words = text.find_last_not_of(kBlank) + 1;
    emit(ToolCallEvent::Kind::kText, text.substr(0, words));
    blank_ = text.substr(words);
    any_text_ = true;
    behind_call_ = false;
}

void ToolCallParser::emit(ToolCallEvent::Kind kind, std::string_view text) {
    using Kind = ToolCallEvent::Kind;
    const std::int32_t call = kind == Kind::kText ? -1 : calls_ - 1;
    const bool streams = kind == Kind::kText || kind == Kind::kArguments;
    if (streams && text.empty())
        return;
    if (streams && !events_.empty() && events_.back().kind == kind && events_.back().call == call)
        events_.back().text += text;
    else
        events_.push_back({kind, call, std::string(text)});
}

void ToolAnswer::add(const std::vector<ToolCallEvent>& events) {
    for (const ToolCallEvent& event : events) {
        switch (event.kind) {
        case ToolCallEvent::Kind::kText:
            text += event.text;
            break;
        case ToolCallEvent::Kind::kCall:
            calls.push_back({event.text, "", false});
            break;
        case ToolCallEvent::Kind::kArguments:
            calls.back().arguments += event.text;
            break;
        case ToolCallEvent::Kind::kEnd:
            calls.back().complete = event.complete;
            break;
        }
    }
}

} // namespace lr::text
