// SPDX-License-Identifier: Apache-2.0
//
// report/trace_tables.h: an analysed step as tables, for a terminal and for a page.
#pragma once

#include "report/table.h"
#include "trace/analysis.h"

#include <string>
#include <utility>
#include <vector>

namespace lr::report {

// "sum of durations" over "235.680 us", ...
std::vector<std::pair<std::string, std::string>> trace_facts(const trace::Analysis& analysis);

Table node_table(const trace::Analysis& analysis);
// Launch by launch; for a step of few launches.
Table path_table(const trace::Analysis& analysis);
// Where branches meet: who was waited for, and how long the others had been ready.
Table join_table(const trace::Analysis& analysis);
Table what_if_table(const trace::Analysis& analysis);

} // namespace lr::report
