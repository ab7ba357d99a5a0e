// SPDX-License-Identifier: Apache-2.0
//
// text/tool_calls.h: finds the tool calls in an answer while it arrives.
//
//   <tool_call>
//   <function=NAME>
//   <parameter=NAME>
//   text of the value
//   </parameter>
//   </function>
//   </tool_call>
//
// Names may stand in quotes. One line feed is taken off either end of a value's text; the tool's
// schema says what JSON it becomes (text/tool_schema.h). Arguments stream as pieces of one JSON
// object; a string's pieces come while its text does, other values when theirs is complete.
//
// A value ends at </parameter>. Where a model forgot that, it ends at the next tag that stands on
// its own, so that a value may talk about tags:
//   <parameter=NAME> at the beginning of a line, NAME one that the tool may have and not yet given
//   </function> before </tool_call>, <tool_call>, <function=NAME> or the end (white space between)
//   </tool_call> at the beginning of a line, or before <tool_call> or the end
//   <tool_call> at the beginning of a line, before <function=
// A call ends at </function>, </tool_call>, or where the next call begins; at the end of the text
// it is marked as incomplete and its arguments are closed. Also understood: <function=NAME> without
// <tool_call> for a NAME among the tools, several functions in one <tool_call>, and
// <tool_call>{"name": ..., "arguments": {...}}</tool_call>, whose arguments come in one piece.
//
// Everything else comes out as text, as it stands: tags that begin no call, a parameter whose tag
// is broken or that was given before, words between parameters. White space before a tag of a
// call belongs to the format and is dropped; so is white space behind one, unless it stands
// between text and text. Where the text was cut
// into pieces makes no difference to what the events say when put together.
#pragma once

#include "text/json_extent.h"
#include "text/tool_schema.h"

#include <cstdint>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace lr::text {

struct ToolCallEvent {
    enum class Kind {
        kText,      // `text` belongs to the answer
        kCall,      // a call begins; `text` is the function's name
        kArguments, // `text` is the next piece of its arguments
        kEnd,       // the call has ended
    };
    Kind kind = Kind::kText;
    std::int32_t call = -1; // 0, 1, ... in order; -1: kText
    std::string text;
    bool complete = true; // kEnd: false if the text ended inside the call
    friend bool operator==(const ToolCallEvent&, const ToolCallEvent&) = default;
};

class ToolCallParser {
  public:
    // `tools` must outlive this.
    explicit ToolCallParser(const ToolSet& tools) : tools_(&tools) {}

    // Whole characters of UTF-8, as the Detokenizer gives them. Events in order, neighbours that
    // could be one put together. Linear in all the text.
    std::vector<ToolCallEvent> push(std::string_view text);
    // The end of the text.
    std::vector<ToolCallEvent> finish();

    std::int32_t calls() const { return calls_; } // begun so far

  private:
    enum class State { kTags, kOpened, kValue, kJson };
    enum class Found { kNo, kMore, kYes }; // kMore: the text ends too early to tell
    struct Tag {
        Found found;
        std::size_t end = 0; // behind the tag, in buffer_
        std::string name;
    };

    void run();
    bool step(); // false: no more can be done before more text comes
    bool step_tags();
    bool step_opened();
    bool step_value();
    bool step_json();
    Found outer_tag();
    Found inner_tag();

    Found look(std::size_t at, std::string_view wanted) const;
    Tag look_named(std::size_t at, std::string_view prefix) const;
    // One of the tags behind white space at `at`; or_end: the end of the text counts too.
    Found look_behind(std::size_t at, std::initializer_list<std::string_view> tags,
                      bool or_end) const;
    Found value_end(std::size_t at, bool line_start) const;

    void begin_call(std::string name);
    void end_call(bool complete);
    void begin_value(std::string name);
    void add_to_value(std::string_view text);
    void end_value();
    void open_string();
    void begin_member(std::string_view name);
    bool take_json_call(std::string_view json, std::string_view arguments);
    void give_up_block();
    void text(std::string_view text);
    void emit(ToolCallEvent::Kind kind, std::string_view text);

    const ToolSet* tools_;
    std::vector<ToolCallEvent> events_;
    std::string buffer_; // text not yet understood begins at at_
    std::size_t at_ = 0;
    std::size_t scan_ = 0; // kOpened: bytes behind at_ known to be the tag and white space
    bool ended_ = false;   // finish() was called
    State state_ = State::kTags;
    bool in_block_ = false; // a </tool_call> is still to come

    // Text.
    std::string blank_;                           // white space that is text only if text follows
    bool any_text_ = false, behind_call_ = false; // behind_call_: no text since the last call began

    // The call.
    std::int32_t calls_ = 0;
    bool in_call_ = false;
    std::string function_;
    std::set<std::string, std::less<>> given_; // names of its parameters
    bool any_member_ = false;                  // "{" has been written

    // The value.
    std::string parameter_, value_; // value_: the text while it may not be written yet
    JsonTypes types_ = kStringType;
    bool streams_ = false; // a string whose opening quote is written
    // Nothing of it has been read; or nothing but the line feed that is taken off.
    bool at_first_byte_ = false, at_line_start_ = false;

    JsonExtent json_{"arguments"}; // kJson: of the object, which begins scan_ behind at_
};

// The events put together.
struct ToolAnswer {
    struct Call {
        std::string name, arguments; // arguments: a JSON object
        bool complete = false;
        friend bool operator==(const Call&, const Call&) = default;
    };
    std::string text;
    std::vector<Call> calls;

    void add(const std::vector<ToolCallEvent>& events);
    friend bool operator==(const ToolAnswer&, const ToolAnswer&) = default;
};

} // namespace lr::text
