// SPDX-License-Identifier: Apache-2.0
//
// trace/csv.h: rows as comma-separated values (docs/TRACE.md says what each column is), and back.
#pragma once

#include "core/status.h"
#include "trace/row.h"

#include <map>
#include <span>
#include <string>
#include <string_view>

namespace lr::trace {

// "step,layer,path,nodes,lane,start_us,end_us,duration_us,bytes,floor_pct" and a line a row.
// Microseconds have three digits after the point.
std::string to_csv(std::span<const Row> rows);

// kInvalidFile names the line: a column that is missing, a field that is no number, an end before
// its start, a duration that is not their difference, a start before the one of the line above.
// Other columns are passed over.
Result<std::vector<Row>> parse_csv(std::string_view text, std::string_view where);

// A table with a line of column names: quoted fields, "" for a quote, \r\n or \n. Empty lines and
// lines that begin with # are passed over.
struct CsvTable {
    std::vector<std::string> columns;
    struct Line {
        std::int64_t number; // in the file, from 1
        std::vector<std::string> fields;
    };
    std::vector<Line> lines;
    std::string where;

    // The columns' places; an error names those that are missing, and what there is.
    Result<std::vector<std::size_t>> find(std::initializer_list<std::string_view> names) const;
    Result<double> number(const Line& line, std::size_t column) const;
};
Result<CsvTable> parse_table(std::string_view text, std::string_view where);

} // namespace lr::trace
