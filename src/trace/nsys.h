// SPDX-License-Identifier: Apache-2.0
//
// trace/nsys.h: the CSV that `nsys stats --report cuda_gpu_trace` writes, with its kernels given to
// nodes by rules that anyone can edit.
//
// A rules file, line by line; # begins a comment:
//   path decode-gdn          the rules below are of this path
//   1 *allreduce*rmsnorm*    kernels whose name fits may be node 1; * is any text, case counts not
// Several patterns may stand for one node, and one pattern with several nodes. A kernel goes to the
// first node of its layer, in the order of the file, that it fits and that has no kernel yet. A
// layer begins at a kernel that fits the path's first node once that node is taken; of several
// paths the one that names most of a layer's kernels is taken, of equals the first in the file.
#pragma once

#include "core/status.h"
#include "trace/row.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lr::trace {

struct PathRules {
    std::string path;
    std::vector<std::pair<std::string, std::string>> patterns; // node, pattern in lower case
};

// kInvalidFile names the line.
Result<std::vector<PathRules>> parse_rules(std::string_view text, std::string_view where);

struct NsysTrace {
    std::vector<Row> rows; // of kernels that a rule names; layers count from 0, lane "stream 7"
    std::vector<std::pair<std::string, std::int64_t>> unnamed; // kernel, how often
};

// Columns "Start (ns)", "Duration (ns)", "Strm" and "Name"; copies and fills (no grid) are passed
// over where the file has "GrdX". Kernels are sorted by start.
Result<NsysTrace> parse_nsys(std::string_view text, std::string_view where,
                             const std::vector<PathRules>& rules);
// Whether the file looks like nsys's and not like ours.
bool is_nsys(std::string_view text);

// "*ab*c" in lower case, against any text.
bool fits(std::string_view pattern, std::string_view text);

} // namespace lr::trace
