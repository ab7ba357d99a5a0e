// SPDX-License-Identifier: Apache-2.0
#include "report/timeline.h"

#include "report/html_page.h"
#include "report/trace_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace lr::report {
namespace {

constexpr double kWidth = 1000; // of the scale, in units of the drawing
constexpr double kLabel = 96, kLine = 18, kGap = 8;

// The rows of one layer, or of the prologue or epilogue.
struct Strip {
    std::string name; // "L3"
    std::vector<std::size_t> rows;
    double start = 0, end = 0;
};

std::vector<Strip> strips_of(const trace::Analysis& analysis) {
    std::vector<Strip> strips;
    std::map<std::string, std::size_t> at;
    for (std::size_t r = 0; r < analysis.rows.size(); ++r) {
        const trace::Row& row = analysis.rows[r];
        const std::string name = row.layer < 0 ? row.path : fmt::format("L{}", row.layer);
        const auto [found, first] = at.emplace(name, strips.size());
        if (first)
            strips.push_back({name, {}, row.start_us, row.end_us});
        Strip& strip = strips[found->second];
        strip.rows.push_back(r);
        strip.end = std::max(strip.end, row.end_us);
    }
    return strips;
}

// A round number of microseconds, ten or fewer to the scale.
double tick_of(double span) {
    double tick = std::pow(10.0, std::floor(std::log10(std::max(span, 1e-3) / 5)));
    for (const double factor : {2.0, 5.0, 10.0})
        if (span / tick > 10)
            tick = std::pow(10.0, std::floor(std::log10(span / 5))) * factor;
    return tick;
}

class Drawing {
  public:
    explicit Drawing(const trace::Analysis& analysis)
        : analysis_(analysis), strips_(strips_of(analysis)),
          critical_(analysis.path.nodes.begin(), analysis.path.nodes.end()) {
        // Of a layer: a large vocabulary's product would leave none of the width to the layers.
        for (const bool layers : {true, false})
            for (const Strip& strip : strips_)
                if (layers ? strip.name.starts_with('L') : longest_ == 0)
                    longest_ = std::max(longest_, strip.end - strip.start);
        scale_ = kWidth / std::max(longest_, 1e-3);
    }

    std::string svg() {
        std::string body = axis();
        double y = 26;
        for (const Strip& strip : strips_)
            body += draw(strip, y);
        return fmt::format("<svg class=\"timeline\" viewBox=\"0 0 {:.0f} {:.0f}\" width=\"{:.0f}\" "
                           "role=\"img\" aria-label=\"Launches of each layer over time; the table "
                           "below holds the same figures\">{}</svg>",
                           kLabel + kWidth + 24, y + 6, kLabel + kWidth + 24, body);
    }

  private:
    double x_of(double us) const { return kLabel + us * scale_; }

    std::string axis() const {
        std::string text;
        const double tick = tick_of(longest_);
        const bool small = tick < 1;
        for (double t = 0; t <= longest_ + 1e-9; t += tick)
            text += fmt::format("<text class=\"tick\" x=\"{:.1f}\" y=\"14\">{}</text>", x_of(t),
                                small ? fmt::format("{:.2f}", t) : fmt::format("{:.0f}", t));
        return text + fmt::format("<text class=\"unit\" x=\"4\" y=\"14\">us</text>");
    }

    std::string grid(double top, double bottom) const {
        std::string text;
        for (double t = 0; t <= longest_ + 1e-9; t += tick_of(longest_))
            text += fmt::format("<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" "
                                "y2=\"{2:.1f}\"/>",
                                x_of(t), top, bottom);
        return text;
    }

    std::string draw(const Strip& strip, double& y) {
        std::vector<std::string> lanes;
        for (std::size_t r : strip.rows)
            if (std::find(lanes.begin(), lanes.end(), analysis_.rows[r].lane) == lanes.end())
                lanes.push_back(analysis_.rows[r].lane);
        std::sort(lanes.begin(), lanes.end());
        const double top = y, height = kLine * static_cast<double>(lanes.size());
        std::string text = grid(top, top + height);
        text += fmt::format("<text class=\"strip\" x=\"4\" y=\"{:.1f}\">{}</text>", top + 13,
                            html_escape(strip.name));
        for (std::size_t l = 0; l < lanes.size(); ++l)
            text +=
                fmt::format("<text class=\"lane\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", kLabel - 6,
                            top + 13 + kLine * static_cast<double>(l), html_escape(lanes[l]));
        for (std::size_t r : strip.rows) {
            const auto lane = std::find(lanes.begin(), lanes.end(), analysis_.rows[r].lane);
            text += bar(r, strip, top + kLine * static_cast<double>(lane - lanes.begin()));
        }
        if (strip.end - strip.start > longest_ + 1e-9)
            text += fmt::format("<text class=\"lane\" x=\"{:.1f}\" y=\"{:.1f}\">cut: {:.0f} us in "
                                "all</text>",
                                kLabel + kWidth + 20, top + height + 9, strip.end - strip.start);
        y = top + height + kGap;
        return text;
    }

    std::string bar(std::size_t r, const Strip& strip, double y) const {
        const trace::Row& row = analysis_.rows[r];
        const double x = x_of(row.start_us - strip.start);
        if (row.start_us - strip.start > longest_)
            return {}; // beyond the scale, as the strip says at its end
        const double width = std::clamp(row.duration_us * scale_, 0.6, kLabel + kWidth + 0.6 - x);
        const char* mark = analysis_.communicates[r]                          ? "comm"
                           : critical_.contains(static_cast<std::int32_t>(r)) ? "live"
                                                                              : "pad";
        std::string about =
            fmt::format("{} {}\n{:.3f} us, from {:.3f} to {:.3f}", trace::place(row), row.name,
                        row.duration_us, row.start_us - strip.start, row.end_us - strip.start);
        about += fmt::format("\nslack {:.3f} us", analysis_.path.slack_us[r]);
        if (row.bytes >= 0)
            about += fmt::format(", {} bytes", group_digits(row.bytes));
        if (row.floor_pct >= 0)
            about += fmt::format(", floor {:.1f} %", row.floor_pct);
        std::string text =
            fmt::format("<g class=\"{}\"><title>{}</title><rect x=\"{:.2f}\" y=\"{:.1f}\" "
                        "width=\"{:.2f}\" height=\"{:.0f}\"/>",
                        mark, html_escape(about), x, y + 1, width, kLine - 3);
        // About 6.5 units a character.
        const std::string number = row.nodes, full = row.nodes + " " + row.name;
        const std::string& label = 6.5 * static_cast<double>(full.size()) < width ? full : number;
        if (6.5 * static_cast<double>(label.size()) < width)
            text += fmt::format("<text x=\"{:.2f}\" y=\"{:.1f}\">{}</text>", x + 2, y + 12.5,
                                html_escape(label));
        return text + "</g>";
    }

    const trace::Analysis& analysis_;
    std::vector<Strip> strips_;
    std::set<std::int32_t> critical_;
    double longest_ = 0, scale_ = 1;
};

constexpr const char* kStyle = R"(
.timeline { display: block; max-width: none; font: 11px ui-monospace, monospace; }
.timeline text { fill: var(--text); }
.timeline .tick, .timeline .unit, .timeline .lane { fill: var(--muted); }
.timeline .tick { text-anchor: middle; }
.timeline .lane { text-anchor: end; }
.timeline .strip { font-weight: bold; }
.timeline .grid { stroke: var(--line); stroke-width: 0.5; }
.timeline rect { stroke: var(--edge); stroke-width: 0.5; }
.timeline .live rect { fill: var(--live); } .timeline .live text { fill: var(--live-ink); }
.timeline .pad rect { fill: var(--pad); } .timeline .pad text { fill: var(--pad-ink); }
.timeline .comm rect { fill: var(--comm); } .timeline .comm text { fill: var(--comm-ink); }
@media print { .timeline { width: 100%; height: auto; } }
)";

constexpr const char* kLegend =
    "<p class=\"note\"><span class=\"swatch\" style=\"background:var(--live)\"></span> on the "
    "critical path &nbsp; <span class=\"swatch\" style=\"background:var(--pad)\"></span> not on it "
    "&nbsp; <span class=\"swatch\" style=\"background:var(--comm)\"></span> communication. Every "
    "strip begins at its own first start; point at a bar for its times.</p>";

} // namespace

std::string timeline_page(const trace::Analysis& analysis, const std::string& title,
                          const std::string& notes) {
    HtmlPage page{.title = title, .lead = notes, .body = {}, .style = kStyle, .script = {}};
    page.body = html_facts(trace_facts(analysis));
    page.body += html_section("timeline", "Timeline",
                              std::string(kLegend) +
                                  "<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
                                  "aria-label=\"Timeline, scrolls sideways\">" +
                                  Drawing(analysis).svg() + "</div>");
    page.body += html_section("nodes", "Where the time goes", html_table(node_table(analysis)));
    page.body += html_section("joins", "Slack", html_table(join_table(analysis)));
    page.body +=
        html_section("fusions", "What fusing could save", html_table(what_if_table(analysis)));
    if (analysis.rows.size() <= 200)
        page.body += html_section("path", "Critical path", html_table(path_table(analysis)));
    return html_page(page);
}

} // namespace lr::report
