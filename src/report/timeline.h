// SPDX-License-Identifier: Apache-2.0
//
// report/timeline.h: an analysed step as a page: every layer a strip, one below the other, all on
// one scale of microseconds; in a strip a line for each lane, and a bar for each launch.
#pragma once

#include "trace/analysis.h"

#include <string>

namespace lr::report {

// `title` names what ran: "tiny, decode step 3". `notes` stand below it: where it ran, what bytes
// and floors mean. Plain text.
std::string timeline_page(const trace::Analysis& analysis, const std::string& title,
                          const std::string& notes);

} // namespace lr::report
