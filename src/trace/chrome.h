// SPDX-License-Identifier: Apache-2.0
//
// trace/chrome.h: rows in the Trace Event Format, which Perfetto and chrome://tracing open.
#pragma once

#include "trace/row.h"

#include <span>
#include <string>

namespace lr::trace {

// One complete event ("ph": "X") a row, a thread a lane; bytes, floor and step are arguments.
std::string to_chrome_json(std::span<const Row> rows);

} // namespace lr::trace
