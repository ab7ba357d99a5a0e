// SPDX-License-Identifier: Apache-2.0
//
// trace/row.h: one launch of one step as it ran: a row of the CSV that docs/TRACE.md defines.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lr::trace {

struct Row {
    std::int64_t step = 0;           // from 0
    std::int32_t layer = -1;         // -1: outside of layers
    std::string path;                // "decode-gdn", ...; "prologue", "epilogue"
    std::string nodes;               // "8", "8+9", "23+24+next.1", "21 gemm" (a stage)
    std::string lane;                // what runs in order: a stream, a rank's lane
    double start_us = 0, end_us = 0; // from the first start of the trace
    double duration_us = 0;
    std::int64_t bytes = -1; // moved, as the graph counts them; -1: not known
    double floor_pct = -1;   // of duration_us that the bytes and operations need at least; -1 so

    std::string name; // "gdn_packed_...", for readers; not in the CSV
};

// "step 2 L4.8+9", "step 0 pro.1".
std::string label(const Row& row);
// "L4.8+9"
std::string place(const Row& row);

} // namespace lr::trace
