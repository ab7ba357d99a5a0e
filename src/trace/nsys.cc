// SPDX-License-Identifier: Apache-2.0
#include "trace/nsys.h"

#include "trace/csv.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

namespace lr::trace {
namespace {

std::string lower(std::string_view text) {
    std::string result(text);
    for (char& c : result)
        c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return result;
}

std::string_view trimmed(std::string_view text) {
    const std::size_t first = text.find_first_not_of(" \t\r");
    if (first == std::string_view::npos)
        return {};
    return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

struct Kernel {
    double start_ns, duration_ns;
    std::string stream, name; // name in lower case
    std::string shown;
};

// The node of each kernel of one layer by a path's rules; "" where none fits.
std::vector<std::string> assign(const std::vector<Kernel>& kernels, std::size_t first,
                                std::size_t end, const PathRules& rules) {
    std::set<std::string> taken;
    std::vector<std::string> nodes;
    for (std::size_t i = first; i < end; ++i) {
        std::string node;
        for (const auto& [number, pattern] : rules.patterns)
            if (node.empty() && !taken.contains(number) && fits(pattern, kernels[i].name))
                node = number;
        taken.insert(node);
        nodes.push_back(std::move(node));
    }
    return nodes;
}

bool begins_layer(const Kernel& kernel, const std::vector<PathRules>& rules) {
    for (const PathRules& path : rules)
        for (const auto& [number, pattern] : path.patterns)
            if (number == path.patterns.front().first && fits(pattern, kernel.name))
                return true;
    return false;
}

// Where a layer ends that begins at `first`: before the second kernel that begins one, counted only
// when all that may be a first node by every path is taken (a norm appears twice in a layer).
std::size_t layer_end(const std::vector<Kernel>& kernels, std::size_t first,
                      const std::vector<PathRules>& rules) {
    for (std::size_t end = first + 1; end < kernels.size(); ++end) {
        if (!begins_layer(kernels[end], rules))
            continue;
        bool fits_on = false; // some path still has another node for it
        for (const PathRules& path : rules)
            fits_on = fits_on || !assign(kernels, first, end + 1, path).back().empty();
        if (!fits_on)
            return end;
    }
    return kernels.size();
}

Result<std::vector<Kernel>> kernels_of(const CsvTable& table) {
    LR_TRY_ASSIGN(const std::vector<std::size_t> at,
                  table.find({"Start (ns)", "Duration (ns)", "Strm", "Name"}));
    const auto grid = std::find(table.columns.begin(), table.columns.end(), "GrdX");
    const auto device = std::find(table.columns.begin(), table.columns.end(), "Device");
    std::vector<Kernel> kernels;
    std::string of_device;
    for (const CsvTable::Line& line : table.lines) {
        if (grid != table.columns.end() &&
            line.fields[static_cast<std::size_t>(grid - table.columns.begin())].empty())
            continue;
        if (device != table.columns.end()) { // ranks of one process: each runs the whole graph
            const std::string& name =
                line.fields[static_cast<std::size_t>(device - table.columns.begin())];
            of_device = of_device.empty() ? name : of_device;
            if (name != of_device)
                return fail(Code::kInvalidFile,
                            "{}:{}: expected kernels of one device, \"{}\" as above, got \"{}\"",
                            table.where, line.number, of_device, name);
        }
        LR_TRY_ASSIGN(const double start, table.number(line, at[0]));
        LR_TRY_ASSIGN(const double duration, table.number(line, at[1]));
        if (duration < 0)
            return fail(Code::kInvalidFile, "{}:{}: Duration (ns): expected >= 0, got {}",
                        table.where, line.number, duration);
        kernels.push_back(
            {start, duration, line.fields[at[2]], lower(line.fields[at[3]]), line.fields[at[3]]});
    }
    std::stable_sort(kernels.begin(), kernels.end(),
                     [](const Kernel& a, const Kernel& b) { return a.start_ns < b.start_ns; });
    return kernels;
}

} // namespace

bool fits(std::string_view pattern, std::string_view text) {
    std::size_t p = 0, t = 0, star = std::string_view::npos, mark = 0;
    while (t < text.size()) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            mark = t;
        } else if (p < pattern.size() && pattern[p] == text[t]) {
            ++p;
            ++t;
        } else if (star != std::string_view::npos) {
            p = star + 1;
            t = ++mark;
        } else {
            return false;
        }
    }
    while (p < pattern.size() && pattern[p] == '*')
        ++p;
    return p == pattern.size();
}

bool is_nsys(std::string_view text) {
    return text.substr(0, text.find('\n')).find("Duration (ns)") != std::string_view::npos;
}

Result<std::vector<PathRules>> parse_rules(std::string_view text, std::string_view where) {
    std::vector<PathRules> rules;
    int number = 0;
    for (std::size_t at = 0; at < text.size(); ++number) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        std::string_view line = text.substr(at, end - at);
        at = end + 1;
        line = trimmed(line.substr(0, line.find('#')));
        if (line.empty())
            continue;
        const std::size_t space = line.find_first_of(" \t");
        const std::string_view head = line.substr(0, space);
        const std::string_view rest =
            space == std::string_view::npos ? std::string_view() : trimmed(line.substr(space));
        const bool digits = std::all_of(head.begin(), head.end(),
                                        [](unsigned char c) { return std::isdigit(c) != 0; });
        if (rest.empty() || (head != "path" && !digits))
            return fail(Code::kInvalidFile,
                        "{}:{}: expected \"path NAME\" or \"NUMBER PATTERN\", got \"{}\"", where,
                        number + 1, line);
        if (head == "path") {
            rules.push_back({std::string(rest), {}});
            continue;
        }
        if (rules.empty())
            return fail(Code::kInvalidFile, "{}:{}: expected \"path NAME\" before the first rule",
                        where, number + 1);
        rules.back().patterns.emplace_back(head, lower(rest));
    }
    for (const PathRules& path : rules)
        if (path.patterns.empty())
            return fail(Code::kInvalidFile, "{}: path {}: expected at least one rule", where,
                        path.path);
    if (rules.empty())
        return fail(Code::kInvalidFile, "{}: expected \"path NAME\" and rules, got none", where);
    return rules;
}

Result<NsysTrace> parse_nsys(std::string_view text, std::string_view where,
                             const std::vector<PathRules>& rules) {
    LR_TRY_ASSIGN(const CsvTable table, parse_table(text, where));
    LR_TRY_ASSIGN(const std::vector<Kernel> kernels, kernels_of(table));
    if (kernels.empty())
        return fail(Code::kInvalidFile, "{}: expected at least one kernel, got none", where);
    NsysTrace trace;
    std::map<std::string, std::int64_t> unnamed;
    std::int32_t layer = 0;
    for (std::size_t first = 0; first < kernels.size();) {
        const std::size_t end = layer_end(kernels, first, rules);
        const PathRules* best = nullptr;
        std::vector<std::string> nodes;
        std::ptrdiff_t most = 0;
        for (const PathRules& path : rules) {
            std::vector<std::string> mine = assign(kernels, first, end, path);
            const std::ptrdiff_t named =
                std::count_if(mine.begin(), mine.end(), [](const auto& n) { return !n.empty(); });
            if (named <= most)
                continue;
            most = named;
            best = &path;
            nodes = std::move(mine);
        }
        for (std::size_t i = first; i < end; ++i) {
            const Kernel& kernel = kernels[i];
            if (!best || nodes[i - first].empty()) {
                ++unnamed[kernel.shown];
                continue;
            }
            const double start = 1e-3 * (kernel.start_ns - kernels.front().start_ns);
            const double duration = 1e-3 * kernel.duration_ns;
            trace.rows.push_back({.step = 0,
                                  .layer = layer,
                                  .path = best->path,
                                  .nodes = nodes[i - first],
                                  .lane = "stream " + kernel.stream,
                                  .start_us = start,
                                  .end_us = start + duration,
                                  .duration_us = duration,
                                  .name = kernel.shown});
        }
        layer += best ? 1 : 0;
        first = end;
    }
    trace.unnamed.assign(unnamed.begin(), unnamed.end());
    return trace;
}

} // namespace lr::trace
