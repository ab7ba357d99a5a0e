// SPDX-License-Identifier: Apache-2.0
#include "cli/text_input.h"

#include "core/check.h"
#include "core/log.h"
#include "core/text_file.h"
#include "text/unicode.h"

#include <algorithm>
#include <charconv>
#include <iostream>
#include <iterator>
#include <unistd.h>

namespace lr::cli {
namespace {

bool is_standard_input(const TextInput& input) {
    return !input.has_text &&
           (input.file.empty() || input.file == "-" || input.file == "/dev/stdin");
}

// Letters to add, drop, change, or swap with their neighbour.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j)
        row[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        before.swap(last);
        last.swap(row);
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = std::min(row[j], before[j - 2] + 1);
        }
    }
    return row[b.size()];
}

} // namespace

Result<std::string> read_text_input(const TextInput& input, std::string_view what) {
    if (input.has_text)
        return input.text;
    if (!is_standard_input(input))
        return read_text_file(input.file);
    if (isatty(STDIN_FILENO))
        log_info("reading the {} from the terminal; end it with Ctrl-D", what);
    return std::string(std::istreambuf_iterator<char>(std::cin), {});
}

std::string origin_of(const TextInput& input, std::string_view what) {
    if (input.has_text)
        return std::string(what);
    return is_standard_input(input) ? "standard input" : input.file;
}

Status check_utf8(std::string_view text, std::string_view name) {
    if (const std::optional<std::size_t> offset = text::first_invalid_utf8(text))
        return fail(Code::kInvalidArgument,
                    "{}: expected UTF-8, got an invalid sequence at byte {}", name, *offset);
    return {};
}

std::vector<TextLine> lines_of(std::string_view text) {
    std::vector<TextLine> lines;
    std::int64_t number = 0;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        const std::string_view line = text.substr(begin, end - begin);
        begin = end + 1;
        ++number;
        if (line.find_first_not_of(" \t\r") != std::string_view::npos)
            lines.push_back({line, number});
    }
    return lines;
}

NearName nearest_name(std::string_view typed, std::span<const std::string> names) {
    LR_CHECK(!names.empty());
    std::size_t least = SIZE_MAX;
    std::string_view nearest;
    for (const std::string& name : names)
        if (const std::size_t changes = distance(typed, name); changes < least) {
            least = changes;
            nearest = name;
        }
    return {std::string(nearest), least <= 1 + typed.size() / 4};
}

Result<std::vector<std::int32_t>> parse_ids(std::string_view list, std::string_view flag) {
    std::vector<std::int32_t> ids;
    std::size_t begin = 0;
    while (begin <= list.size()) {
        const std::size_t end = std::min(list.find(',', begin), list.size());
        const std::string_view item = list.substr(begin, end - begin);
        std::int32_t value = -1;
        const char* last = item.data() + item.size();
        const auto [end_of_number, problem] = std::from_chars(item.data(), last, value);
        if (problem != std::errc() || end_of_number != last || value < 0)
            return fail(Code::kInvalidArgument,
                        "{}: expected numbers such as 1,2,3, got \"{}\" at item {}", flag, item,
                        ids.size() + 1);
        ids.push_back(value);
        begin = end + 1;
    }
    return ids;
}

} // namespace lr::cli
