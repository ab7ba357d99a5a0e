// SPDX-License-Identifier: Apache-2.0
//
// report/table.h: a table of text cells, written as aligned lines. report/html_page.h writes the
// same table for a browser, so that what a terminal and a page show is one object.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lr::report {

enum class Align { kLeft, kRight }; // numbers stand to the right

struct Column {
    std::string title;
    Align align = Align::kRight;
};

struct Table {
    std::string caption; // what the table holds, as a short phrase
    std::vector<Column> columns;
    std::vector<std::vector<std::string>> rows; // cells of UTF-8; the first one names its row

    Table(std::string title, std::vector<Column> heads)
        : caption(std::move(title)), columns(std::move(heads)) {}
    // As many cells as columns (checked).
    void add(std::vector<std::string> cells);
};

// "caption\n", the titles, and a line for each row; no line ends in blanks. `indent` blanks stand
// before each line but the caption's; an empty caption has no line.
std::string table_text(const Table& table, int indent = 2);

// 1234567 -> "1,234,567".
std::string group_digits(std::int64_t value);

// Characters of UTF-8 text: what a terminal shows one cell wide, wide scripts apart.
std::int64_t character_count(std::string_view utf8);

} // namespace lr::report
