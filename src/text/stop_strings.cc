// SPDX-License-Identifier: Apache-2.0
#include "text/stop_strings.h"

#include "core/check.h"
#include "text/unicode.h"

#include <algorithm>

namespace lr::text {

Result<StopStrings> StopStrings::compile(const std::vector<std::string>& strings) {
    StopStrings compiled;
    for (std::size_t i = 0; i < strings.size(); ++i) {
        if (strings[i].empty())
            return fail(Code::kInvalidArgument, "stop[{}]: expected text, got \"\"", i);
        if (const auto offset = first_invalid_utf8(strings[i]))
            return fail(Code::kInvalidArgument,
                        "stop[{}]: expected UTF-8, got an invalid sequence at byte {}", i, *offset);
        compiled.add(strings[i], static_cast<std::int32_t>(i));
    }
    compiled.link_fallbacks();
    return compiled;
}

std::int32_t StopStrings::child(std::int32_t node, unsigned char byte) const {
    for (const auto& [value, next] : nodes_[static_cast<std::size_t>(node)].next)
        if (value == byte)
            return next;
    return -1;
}

void StopStrings::add(std::string_view string, std::int32_t index) {
    std::int32_t node = 0;
    for (char c : string) {
        const auto byte = static_cast<unsigned char>(c);
        std::int32_t next = child(node, byte);
        if (next < 0) {
            next = static_cast<std::int32_t>(nodes_.size());
            nodes_[static_cast<std::size_t>(node)].next.emplace_back(byte, next);
            nodes_.push_back({.depth = nodes_[static_cast<std::size_t>(node)].depth + 1});
        }
        node = next;
    }
    Node& last = nodes_[static_cast<std::size_t>(node)];
    if (last.match_index < 0) { // the first of equal strings
        last.match_bytes = last.depth;
        last.match_index = index;
    }
}

// Breadth first: the fallback of a child is found from that of its parent.
void StopStrings::link_fallbacks() {
    std::deque<std::int32_t> queue{0};
    while (!queue.empty()) {
        const std::int32_t parent = queue.front();
        queue.pop_front();
        for (const auto& [byte, at] : nodes_[static_cast<std::size_t>(parent)].next) {
            Node& node = nodes_[static_cast<std::size_t>(at)];
            if (parent != 0) {
                std::int32_t from = nodes_[static_cast<std::size_t>(parent)].fallback;
                while (from != 0 && child(from, byte) < 0)
                    from = nodes_[static_cast<std::size_t>(from)].fallback;
                node.fallback = std::max(child(from, byte), 0);
            }
            const Node& shorter = nodes_[static_cast<std::size_t>(node.fallback)];
            if (node.match_index < 0) {
                node.match_bytes = shorter.match_bytes;
                node.match_index = shorter.match_index;
            }
            queue.push_back(at);
        }
    }
}

std::vector<std::int32_t> stop_token_ids(const Tokenizer& tokenizer,
                                         std::span<const std::string> strings) {
    std::vector<std::int32_t> ids;
    for (const AddedToken& token : tokenizer.added_tokens())
        if (token.special &&
            std::find(strings.begin(), strings.end(), token.content) != strings.end())
            ids.push_back(token.id);
    return ids;
}

std::string StopMatcher::push(std::string_view text) {
    if (stopped())
        return {};
    pushed_tokens_ += 1;
    pushed_bytes_ += text.size();
    unreleased_.push_back(pushed_bytes_);
    const std::size_t before = held_bytes();
    held_ += text;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto byte = static_cast<unsigned char>(text[i]);
        std::int32_t next = strings_->child(node_, byte);
        while (next < 0 && node_ != 0) {
            node_ = strings_->nodes_[static_cast<std::size_t>(node_)].fallback;
            next = strings_->child(node_, byte);
        }
        node_ = std::max(next, 0);
        const StopStrings::Node& node = strings_->nodes_[static_cast<std::size_t>(node_)];
        if (node.match_index < 0)
            continue;
        matched_ = node.match_index;
        return release(before + i + 1 - node.match_bytes);
    }
    return release(held_bytes() - strings_->nodes_[static_cast<std::size_t>(node_)].depth);
}

std::string StopMatcher::flush() {
    return stopped() ? std::string() : release(held_bytes());
}

// Bytes handed out are dropped in bulk, so that a long held text is not moved at every push.
std::string StopMatcher::release(std::size_t bytes) {
    LR_DCHECK(bytes <= held_bytes());
    std::string out = held_.substr(held_begin_, bytes);
    held_begin_ += bytes;
    if (held_begin_ >= held_.size() - held_begin_) {
        held_.erase(0, held_begin_);
        held_begin_ = 0;
    }
    released_bytes_ += bytes;
    while (!unreleased_.empty() && unreleased_.front() <= released_bytes_)
        unreleased_.pop_front();
    return out;
}

} // namespace lr::text
