// SPDX-License-Identifier: Apache-2.0
#include "ops/contract.h"

#include "core/check.h"

#include <algorithm>

namespace lr::ops {
namespace {

constexpr std::size_t kTextColumn = 10; // "Math      ..."

// The comment's lines without slashes, the licence line and the blank one after it.
std::vector<std::string_view> comment_lines(std::string_view comment) {
    std::vector<std::string_view> lines;
    while (!comment.empty()) {
        const std::size_t end = std::min(comment.find('\n'), comment.size());
        std::string_view line = comment.substr(0, end);
        comment.remove_prefix(std::min(end + 1, comment.size()));
        if (!line.starts_with("//") || line.starts_with("// SPDX"))
            continue;
        line.remove_prefix(line.starts_with("// ") ? 3 : 2);
        if (!lines.empty() || !line.empty())
            lines.push_back(line);
    }
    return lines;
}

// "Math" of "Math      y = x"; "" of any other line.
std::string_view label_of(std::string_view line) {
    const std::size_t blank = line.find("  ");
    if (blank == std::string_view::npos || blank == 0 || blank >= kTextColumn ||
        line.find_first_not_of(' ', blank) != kTextColumn)
        return {};
    return line.substr(0, blank);
}

void append_line(std::string& text, std::string_view line) {
    if (!text.empty())
        text += '\n';
    text += line;
}

std::string trimmed(std::string text) {
    text.erase(text.find_last_not_of('\n') + 1);
    text.erase(0, text.find_first_not_of('\n'));
    return text;
}

} // namespace

Contract contract(std::string_view op) {
    const auto texts = contract_texts();
    const auto found = std::find_if(texts.begin(), texts.end(),
                                    [&](const ContractText& text) { return text.op == op; });
    LR_CHECK(found != texts.end());
    Contract result;
    bool labels = true; // or the remarks after them
    for (std::string_view line : comment_lines(found->comment)) {
        if (const std::string_view label = labels ? label_of(line) : ""; !label.empty()) {
            result.parts.push_back({std::string(label), std::string(line.substr(kTextColumn))});
        } else if (result.parts.empty()) {
            append_line(result.purpose, line);
        } else if (labels && line.starts_with(' ')) {
            const std::size_t indent = std::min(line.find_first_not_of(' '), kTextColumn);
            append_line(result.parts.back().text, line.substr(indent));
        } else if (labels && !line.empty() && result.parts.size() > 1) {
            // A long line that the formatter broke: it goes on at the margin.
            append_line(result.parts.back().text, line);
        } else {
            labels = false;
            append_line(result.remarks, line);
        }
    }
    result.purpose = trimmed(std::move(result.purpose));
    // "ops/gdn/gating.h: the decay ..." -> "the decay ..."
    if (const std::size_t colon = result.purpose.find(".h: "); colon != std::string::npos)
        result.purpose.erase(0, colon + 4);
    result.remarks = trimmed(std::move(result.remarks));
    return result;
}

} // namespace lr::ops
