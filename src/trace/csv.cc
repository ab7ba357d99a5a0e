// SPDX-License-Identifier: Apache-2.0
#include "trace/csv.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace lr::trace {
namespace {

std::string quoted(const std::string& field) {
    if (field.find_first_of(",\"\n\r") == std::string::npos)
        return field;
    std::string text = "\"";
    for (char c : field) {
        if (c == '"')
            text += '"';
        text += c;
    }
    return text + '"';
}

// The fields of one line, from `at` on, which ends up behind the line.
Result<std::vector<std::string>> read_line(std::string_view text, std::size_t& at,
                                           std::string_view where, std::int64_t number) {
    std::vector<std::string> fields(1);
    bool inside = false;
    for (; at < text.size() && (inside || text[at] != '\n'); ++at) {
        const char c = text[at];
        if (c == '"' && inside && at + 1 < text.size() && text[at + 1] == '"') {
            fields.back() += '"';
            ++at;
        } else if (c == '"') {
            inside = !inside;
        } else if (c == ',' && !inside) {
            fields.emplace_back();
        } else if (c != '\r' || inside) {
            fields.back() += c;
        }
    }
    if (inside)
        return fail(Code::kInvalidFile, "{}:{}: expected a closing quote, got the end of the file",
                    where, number);
    ++at;
    return fields;
}

Result<Row> row_of(const CsvTable& table, const CsvTable::Line& line,
                   const std::vector<std::size_t>& at) {
    const auto whole = [&](std::size_t column) -> Result<std::int64_t> {
        LR_TRY_ASSIGN(const double value, table.number(line, column));
        if (value != std::floor(value))
            return fail(Code::kInvalidFile, "{}:{}: {}: expected a whole number, got {}",
                        table.where, line.number, table.columns[column], value);
        return static_cast<std::int64_t>(value);
    };
    Row row;
    LR_TRY_ASSIGN(row.step, whole(at[0]));
    LR_TRY_ASSIGN(const std::int64_t layer, whole(at[1]));
    row.layer = static_cast<std::int32_t>(layer);
    row.path = line.fields[at[2]];
    row.nodes = line.fields[at[3]];
    row.lane = line.fields[at[4]];
    LR_TRY_ASSIGN(row.start_us, table.number(line, at[5]));
    LR_TRY_ASSIGN(row.end_us, table.number(line, at[6]));
    LR_TRY_ASSIGN(row.duration_us, table.number(line, at[7]));
    if (!line.fields[at[8]].empty()) {
        LR_TRY_ASSIGN(row.bytes, whole(at[8]));
    }
    if (!line.fields[at[9]].empty()) {
        LR_TRY_ASSIGN(row.floor_pct, table.number(line, at[9]));
    }
    return row;
}

Status check_times(const CsvTable& table, const CsvTable::Line& line, const Row& row,
                   double previous) {
    const auto wrong = [&](std::string_view expected, double got) {
        return fail(Code::kInvalidFile, "{}:{}: {}: expected {}, got {}", table.where, line.number,
                    label(row), expected, got);
    };
    if (row.end_us < row.start_us)
        return wrong(fmt::format("end_us >= start_us {}", row.start_us), row.end_us);
    if (std::abs(row.end_us - row.start_us - row.duration_us) > 2e-3)
        return wrong(
            fmt::format("duration_us = end_us - start_us = {:.3f}", row.end_us - row.start_us),
            row.duration_us);
    if (row.start_us < previous)
        return wrong(
            fmt::format("start_us >= {} of the line above (time does not run backwards)", previous),
            row.start_us);
    return {};
}

} // namespace

std::string to_csv(std::span<const Row> rows) {
    std::string text = "step,layer,path,nodes,lane,start_us,end_us,duration_us,bytes,floor_pct\n";
    for (const Row& row : rows) {
        text += fmt::format("{},{},{},{},{},{:.3f},{:.3f},{:.3f},", row.step, row.layer,
                            quoted(row.path), quoted(row.nodes), quoted(row.lane), row.start_us,
                            row.end_us, row.duration_us);
        text += row.bytes < 0 ? "," : fmt::format("{},", row.bytes);
        text += row.floor_pct < 0 ? "\n" : fmt::format("{:.1f}\n", row.floor_pct);
    }
    return text;
}

Result<CsvTable> parse_table(std::string_view text, std::string_view where) {
    CsvTable table;
    table.where = where;
    std::int64_t number = 1;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t first = at;
        const std::int64_t begun = number;
        LR_TRY_ASSIGN(std::vector<std::string> fields, read_line(text, at, where, number));
        number +=
            std::count(text.begin() + static_cast<std::ptrdiff_t>(first),
                       text.begin() + static_cast<std::ptrdiff_t>(std::min(at, text.size())), '\n');
        if ((fields.size() == 1 && fields[0].empty()) || fields[0].starts_with('#'))
            continue;
        if (table.columns.empty()) {
            table.columns = std::move(fields);
            continue;
        }
        if (fields.size() != table.columns.size())
            return fail(Code::kInvalidFile,
                        "{}:{}: expected {} fields as in the first line, got {}", where, begun,
                        table.columns.size(), fields.size());
        table.lines.push_back({begun, std::move(fields)});
    }
    if (table.columns.empty())
        return fail(Code::kInvalidFile, "{}: expected a line of column names, got an empty file",
                    where);
    return table;
}

Result<std::vector<std::size_t>>
CsvTable::find(std::initializer_list<std::string_view> names) const {
    std::vector<std::size_t> places;
    std::vector<std::string_view> missing;
    for (std::string_view name : names) {
        const auto found = std::find(columns.begin(), columns.end(), name);
        if (found == columns.end())
            missing.push_back(name);
        places.push_back(static_cast<std::size_t>(found - columns.begin()));
    }
    if (missing.empty())
        return places;
    return fail(Code::kInvalidFile, "{}: expected column{} {}, got {}", where,
                missing.size() == 1 ? "" : "s", fmt::join(missing, ", "), fmt::join(columns, ", "));
}

Result<double> CsvTable::number(const Line& line, std::size_t column) const {
    const std::string& text = line.fields[column];
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
        return fail(Code::kInvalidFile, "{}:{}: {}: expected a number, got \"{}\"", where,
                    line.number, columns[column], text);
    return value;
}

Result<std::vector<Row>> parse_csv(std::string_view text, std::string_view where) {
    LR_TRY_ASSIGN(const CsvTable table, parse_table(text, where));
    LR_TRY_ASSIGN(const std::vector<std::size_t> at,
                  table.find({"step", "layer", "path", "nodes", "lane", "start_us", "end_us",
                              "duration_us", "bytes", "floor_pct"}));
    std::vector<Row> rows;
    for (const CsvTable::Line& line : table.lines) {
        LR_TRY_ASSIGN(Row row, row_of(table, line, at));
        LR_TRY(check_times(table, line, row, rows.empty() ? row.start_us : rows.back().start_us));
        rows.push_back(std::move(row));
    }
    if (rows.empty())
        return fail(Code::kInvalidFile, "{}: expected at least one launch, got none", where);
    return rows;
}

} // namespace lr::trace
