// SPDX-License-Identifier: Apache-2.0
//
// report/experts_parts.h: the sections of experts_report.h one by one.
#pragma once

#include "report/experts_report.h"

#include <span>

namespace lr::report {

// experts_rows.cc: what lies where.
Section rows_section(const ExpertsInput& input);
Section list_section(const ExpertsInput& input); // requires uses_index_list(layout)

// experts_programs.cc: what programs do with it.
Section programs_section(const ExpertsInput& input);
Section schedule_section(const ExpertsInput& input);

// experts_costs.cc: bounds and bytes.
Section capacity_section(const ExpertsInput& input);
Section bytes_section(const ExpertsInput& input);

// experts_questions.cc: what was asked besides.
Result<Section> split_section(const ExpertsInput& input); // requires halves
Section times_section(const ExpertsInput& input);         // requires times
Result<Section> sweep_section(const ExpertsInput& input); // requires sweep
Result<Section> element_section(const ExpertsInput& input);

// tile_map.cc: HTML figures.
std::string rows_figure(const ExpertsInput& input);
std::string programs_figure(const ExpertsInput& input);
std::string schedule_figure(const ExpertsInput& input);
std::string_view figure_style(); // the CSS they need

// The problem with other rows: everything else is the same.
experts::Problem with_routing(experts::Problem problem, experts::Routing routing);

// The launch of the gate and up GEMM, on which the down GEMM's blocks are the same.
experts::Launch gate_up_launch(const experts::Problem& problem);

// How many of `count` rows a table shows, and what to say of the others.
std::int64_t shown_rows(const ExpertsInput& input, std::int64_t count);
void note_hidden(const ExpertsInput& input, std::int64_t count, const char* what, Section& section);

Json optional_json(std::optional<std::int64_t> value); // null for none

Json json_ints(std::span<const std::int32_t> values);
// "96 160 192 ... (150 more)".
std::string joined(const std::vector<std::int32_t>& rows, std::size_t most);

std::string percent(double share);        // "42.7 %"
std::string microseconds(double seconds); // "12.345 us"

} // namespace lr::report
