// SPDX-License-Identifier: Apache-2.0
#include "trace/chrome.h"

#include "core/json.h"

#include <fmt/format.h>

#include <algorithm>

namespace lr::trace {

std::string to_chrome_json(std::span<const Row> rows) {
    std::vector<std::string> lanes;
    for (const Row& row : rows)
        if (std::find(lanes.begin(), lanes.end(), row.lane) == lanes.end())
            lanes.push_back(row.lane);
    std::string text = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
    for (std::size_t i = 0; i < lanes.size(); ++i)
        text += fmt::format("{{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":0,\"tid\":{},"
                            "\"args\":{{\"name\":{}}}}},\n",
                            i, json_quote(lanes[i]));
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const Row& row = rows[i];
        const auto lane = std::find(lanes.begin(), lanes.end(), row.lane) - lanes.begin();
        std::string arguments = fmt::format("\"step\":{}", row.step);
        if (!row.name.empty())
            arguments += fmt::format(",\"op\":{}", json_quote(row.name));
        if (row.bytes >= 0)
            arguments += fmt::format(",\"bytes\":{}", row.bytes);
        if (row.floor_pct >= 0)
            arguments += fmt::format(",\"floor_pct\":{:.1f}", row.floor_pct);
        text += fmt::format("{{\"name\":{},\"cat\":{},\"ph\":\"X\",\"ts\":{:.3f},\"dur\":{:.3f},"
                            "\"pid\":0,\"tid\":{},\"args\":{{{}}}}}{}\n",
                            json_quote(place(row)), json_quote(row.path), row.start_us,
                            row.duration_us, lane, arguments, i + 1 < rows.size() ? "," : "");
    }
    return text + "]}\n";
}

} // namespace lr::trace
