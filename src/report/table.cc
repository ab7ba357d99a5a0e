// SPDX-License-Identifier: Apache-2.0
#include "report/table.h"

#include "core/check.h"

#include <algorithm>

namespace lr::report {
namespace {

constexpr std::int64_t kGap = 2; // blanks between columns

std::vector<std::int64_t> widths(const Table& table) {
    std::vector<std::int64_t> width;
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
        width.push_back(character_count(table.columns[c].title));
        for (const auto& row : table.rows)
            width[c] = std::max(width[c], character_count(row[c]));
    }
    return width;
}

void append_blanks(std::string& text, std::int64_t count) {
    text.append(static_cast<std::size_t>(count), ' ');
}

// Appends one cell in its column, with the gap before it.
void append_cell(std::string& line, std::string_view cell, Align align, std::int64_t width,
                 std::int64_t gap) {
    const std::int64_t blanks = width - character_count(cell);
    append_blanks(line, gap + (align == Align::kRight ? blanks : 0));
    line += cell;
    append_blanks(line, align == Align::kLeft ? blanks : 0);
}

} // namespace

void Table::add(std::vector<std::string> cells) {
    LR_CHECK_EQ(cells.size(), columns.size());
    rows.push_back(std::move(cells));
}

std::string table_text(const Table& table, int indent) {
    const std::vector<std::int64_t> width = widths(table);
    std::string text = table.caption.empty() ? "" : table.caption + "\n";
    const auto append_line = [&](auto cell_of) {
        std::string line;
        for (std::size_t c = 0; c < width.size(); ++c)
            append_cell(line, cell_of(c), table.columns[c].align, width[c], c ? kGap : indent);
        line.erase(line.find_last_not_of(' ') + 1);
        text += line + "\n";
    };
    append_line([&](std::size_t c) -> std::string_view { return table.columns[c].title; });
    for (const auto& row : table.rows)
        append_line([&](std::size_t c) -> std::string_view { return row[c]; });
    return text;
}

std::string group_digits(std::int64_t value) {
    std::string digits = fmt::format("{}", value);
    const std::size_t first = digits.front() == '-' ? 1 : 0;
    for (std::size_t at = digits.size(); at > first + 3;)
        digits.insert(at -= 3, 1, ',');
    return digits;
}

std::int64_t character_count(std::string_view utf8) {
    return std::count_if(utf8.begin(), utf8.end(), [](char byte) {
        return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; // not a continuation byte
    });
}

} // namespace lr::report
