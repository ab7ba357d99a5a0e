// SPDX-License-Identifier: Apache-2.0
//
// text/reasoning.h: splits what a model writes into its reasoning and its answer, while it arrives.
//
// The rendered prompt decides where an answer begins: inside reasoning if its last <think> is open
// (Qwen3.5's generation prompt), else outside.
//
//   inside   </think> ends the reasoning; without one, all of it is reasoning. A tool call, that is
//            <tool_call>, white space, then "<function=" or "{", ends it too (Qwen3.5 often leaves
//            </think> out before a call): the call is content, and a </think> behind it is dropped.
//            The tag without a call behind it is a word of the reasoning.
//   outside  <think> opens reasoning where nothing but white space came before it.
// A <think> at the beginning of reasoning and a </think> at the beginning of an answer are dropped;
// anywhere else a tag is text like any other. So tags never show up where a parser would expect
// them.
//
// White space that the chat template writes around the tags belongs to neither part: one line feed
// behind <think> and before </think> or a call, up to two behind </think>. Reasoning of white space
// alone is none. The two parts hold every other byte, in order.
#pragma once

#include "text/tokenizer.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace lr::text {

struct ReasoningFormat {
    std::string open = "<think>", close = "</think>";
    std::string call = "<tool_call>"; // "": calls do not end reasoning
    // The token that is the tag: then the tag is that token and never text that spells it. -1: the
    // tag is looked for in the text.
    std::int32_t open_id = -1, close_id = -1, call_id = -1;
};

// The format above with the ids of the tags that are tokens.
ReasoningFormat reasoning_format(const Tokenizer& tokenizer);

struct SplitText {
    std::string reasoning, content;
    friend bool operator==(const SplitText&, const SplitText&) = default;
};

class ReasoningSplitter {
  public:
    ReasoningSplitter(ReasoningFormat format, bool inside);

    // One more token: its id (-1 if unknown) and the text that the detokenizer gave for it, in
    // which a tag's own text may be missing (a control token that is skipped). Returns what is now
    // known to belong to either part. Linear in all the text.
    SplitText push(std::int32_t id, std::string_view text);
    SplitText push(std::string_view text) { return push(-1, text); }
    // The end: what was held back.
    SplitText flush();

    bool inside() const { return part_ == Part::kReasoning; }

  private:
    enum class Part { kReasoning, kStart, kContent }; // kStart: only white space has come
    enum class Tag { kNone, kOpen, kClose, kCall };

    Tag tag_of(std::int32_t id) const;
    const std::string& text_of(Tag tag) const;
    void scan(std::string_view text);
    void on_text(std::string_view text);
    void on_reasoning(std::string_view text);
    void on_tag(Tag tag);
    void decide_call(bool no_more);
    void close(int line_feeds);

    ReasoningFormat format_;
    std::string first_bytes_; // of the tags that are looked for in the text
    Part part_;
    SplitText out_;
    std::string partial_;        // may be the beginning of a tag in the text
    std::string blank_;          // white space at the beginning of a part
    bool fresh_ = true;          // the part is white space so far
    bool line_feed_ = false;     // one of the reasoning's, held back: a tag may follow
    int skipped_line_feeds_ = 0; // how many line feeds to drop, if they come next
    std::string call_;           // the call tag in reasoning and what followed; "" if none
    bool drop_close_ = false;    // a call ended the reasoning
};

} // namespace lr::text
