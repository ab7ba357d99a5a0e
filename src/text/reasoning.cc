// SPDX-License-Identifier: Apache-2.0
#include "text/reasoning.h"

#include <algorithm>
#include <utility>

namespace lr::text {

namespace {

constexpr std::string_view kBlank = " \t\r\n";
// White space between the call tag and the call; more means that no call follows.
constexpr std::size_t kMostBlankBeforeCall = 16;

bool is_blank(std::string_view text) {
    return text.find_first_not_of(kBlank) == std::string_view::npos;
}

} // namespace

ReasoningFormat reasoning_format(const Tokenizer& tokenizer) {
    ReasoningFormat format;
    for (const AddedToken& token : tokenizer.added_tokens()) {
        if (token.content == format.open)
            format.open_id = token.id;
        if (token.content == format.close)
            format.close_id = token.id;
        if (token.content == format.call)
            format.call_id = token.id;
    }
    return format;
}

ReasoningSplitter::ReasoningSplitter(ReasoningFormat format, bool inside)
    : format_(std::move(format)), part_(inside ? Part::kReasoning : Part::kStart) {
    if (format_.open_id < 0)
        first_bytes_ += format_.open[0];
    if (format_.close_id < 0)
        first_bytes_ += format_.close[0];
    if (format_.call_id < 0 && !format_.call.empty())
        first_bytes_ += format_.call[0];
}

SplitText ReasoningSplitter::push(std::int32_t id, std::string_view text) {
    const Tag tag = tag_of(id);
    if (tag == Tag::kNone) {
        scan(text);
        return std::exchange(out_, {});
    }
    on_text(std::exchange(partial_, {}));
    if (text.ends_with(text_of(tag)))
        text.remove_suffix(text_of(tag).size());
    on_text(text);
    on_tag(tag);
    return std::exchange(out_, {});
}

SplitText ReasoningSplitter::flush() {
    on_text(std::exchange(partial_, {}));
    decide_call(true);
    if (part_ == Part::kStart)
        out_.content += std::exchange(blank_, {});
    if (std::exchange(line_feed_, false))
        out_.reasoning += '\n';
    return std::exchange(out_, {});
}

ReasoningSplitter::Tag ReasoningSplitter::tag_of(std::int32_t id) const {
    if (id < 0)
        return Tag::kNone;
    if (id == format_.open_id)
        return Tag::kOpen;
    if (id == format_.close_id)
        return Tag::kClose;
    return id == format_.call_id && !format_.call.empty() ? Tag::kCall : Tag::kNone;
}

const std::string& ReasoningSplitter::text_of(Tag tag) const {
    return tag == Tag::kOpen ? format_.open : tag == Tag::kClose ? format_.close : format_.call;
}

// Cuts the text at the tags that are spelled in it. Its end may be the beginning of one.
void ReasoningSplitter::scan(std::string_view text) {
    const std::string joined = std::exchange(partial_, {}) + std::string(text);
    const std::string_view all = joined;
    std::size_t done = 0;
    for (std::size_t at = all.find_first_of(first_bytes_); at != std::string_view::npos;
         at = all.find_first_of(first_bytes_, at)) {
        const std::string_view rest = all.substr(at);
        Tag found = Tag::kNone;
        bool begun = false;
        for (const auto& [tag, id] :
             {std::pair(Tag::kOpen, format_.open_id), std::pair(Tag::kClose, format_.close_id),
              std::pair(Tag::kCall, format_.call_id)}) {
            const std::string& wanted = text_of(tag);
            if (id >= 0 || wanted.empty())
                continue;
            if (rest.starts_with(wanted))
                found = tag;
            begun = begun || (rest.size() < wanted.size() && wanted.starts_with(rest));
        }
        if (found == Tag::kNone && begun) {
            partial_ = rest;
            on_text(all.substr(done, at - done));
            return;
        }
        if (found == Tag::kNone) {
            ++at;
            continue;
        }
        on_text(all.substr(done, at - done));
        on_tag(found);
        at += text_of(found).size();
        done = at;
    }
    on_text(all.substr(done));
}

void ReasoningSplitter::on_text(std::string_view text) {
    if (!call_.empty()) {
        call_ += text;
        decide_call(false);
        return;
    }
    while (skipped_line_feeds_ > 0 && text.starts_with('\n')) {
        text.remove_prefix(1);
        --skipped_line_feeds_;
    }
    if (text.empty())
        return;
    skipped_line_feeds_ = 0;
    if (part_ == Part::kContent) {
        out_.content += text;
        return;
    }
    if (fresh_ && is_blank(text)) {
        blank_ += text;
        return;
    }
    fresh_ = false;
    if (part_ == Part::kStart) {
        part_ = Part::kContent;
        out_.content += std::exchange(blank_, {});
        out_.content += text;
        return;
    }
    on_reasoning(std::exchange(blank_, {}));
    on_reasoning(text);
}

void ReasoningSplitter::on_reasoning(std::string_view text) {
    if (text.empty())
        return;
    if (std::exchange(line_feed_, text.ends_with('\n')))
        out_.reasoning += '\n';
    if (line_feed_)
        text.remove_suffix(1);
    out_.reasoning += text;
}

void ReasoningSplitter::on_tag(Tag tag) {
    decide_call(true);
    const bool at_beginning = fresh_ && part_ != Part::kContent;
    if (tag == Tag::kClose && (at_beginning || part_ == Part::kReasoning || drop_close_)) {
        drop_close_ = false;
        close(2);
    } else if (tag == Tag::kOpen && at_beginning) {
        part_ = Part::kReasoning;
        blank_.clear();
        skipped_line_feeds_ = 1;
    } else if (tag == Tag::kCall && part_ == Part::kReasoning) {
        call_ = format_.call;
    } else {
        on_text(text_of(tag));
    }
}

// Whether what follows the call tag in reasoning is a call. no_more: it is not unless it shows now.
void ReasoningSplitter::decide_call(bool no_more) {
    if (call_.empty())
        return;
    constexpr std::string_view kFunction = "<function=";
    const std::string_view behind = std::string_view(call_).substr(format_.call.size());
    const std::size_t blank = std::min(behind.find_first_not_of(kBlank), behind.size());
    const std::string_view call = behind.substr(blank);
    const bool is_call = call.starts_with('{') || call.starts_with(kFunction);
    const bool may_be = blank <= kMostBlankBeforeCall && kFunction.starts_with(call);
    if (!is_call && may_be && !no_more)
        return;
    const std::string text = std::exchange(call_, {});
    if (is_call && blank <= kMostBlankBeforeCall) {
        close(0);
        drop_close_ = true;
    }
    on_text(text);
}

void ReasoningSplitter::close(int line_feeds) {
    part_ = Part::kContent;
    fresh_ = false;
    blank_.clear();
    line_feed_ = false;
    skipped_line_feeds_ = line_feeds;
}

} // namespace lr::text
