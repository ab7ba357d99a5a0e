// SPDX-License-Identifier: Apache-2.0
#include "report/graph_svg.h"

#include "report/graph_text.h"
#include "report/html_page.h"

#include <algorithm>
#include <cmath>

namespace lr::report {
namespace {

constexpr std::string_view kStyle = R"css(
.graph svg { display: block; max-width: none; height: auto; }
.graph .long { width: 100%; }
.graph .tall { display: none; }
.graph .strip { fill: var(--panel); }
.graph .strip-name { fill: var(--muted); font-size: 11px; }
.graph .body { fill: var(--page); stroke: var(--edge); stroke-width: 1; }
.graph .path .body { stroke: var(--text); stroke-width: 2; }
.graph .comm .body { stroke: var(--comm); stroke-width: 3; }
.graph .alias .body { stroke-dasharray: 4 3; }
.graph .ghost .body, .graph .outside .body { stroke-dasharray: 2 3; fill: none; }
.graph .heat { fill: var(--pad); }
.graph .bar { fill: var(--live); }
.graph .arithmetic .bar { fill: var(--zero); }
.graph .link .bar { fill: var(--comm); }
.graph .tag { fill: var(--comm); }
.graph .tag-name { fill: var(--comm-ink); font-size: 9.5px; font-weight: 600; }
.graph .number { fill: var(--text); font-size: 12.5px; font-weight: 700; }
.graph .time { fill: var(--text); font-size: 11px; }
.graph .name { fill: var(--text); font-size: 10.5px; letter-spacing: -.1px; }
.graph .alias text, .graph .outside text { fill: var(--muted); }
.graph a { cursor: pointer; text-decoration: none; outline: none; }
.graph a:hover .body { fill: var(--panel); }
.graph a:focus-visible .body { stroke: var(--focus); stroke-width: 4; }
.graph .wire { fill: none; stroke: var(--edge); stroke-width: 1.25; }
.graph .wire.path { stroke: var(--text); stroke-width: 2; }
.graph .wire.added { stroke: var(--zero); stroke-width: 2; stroke-dasharray: 5 3; }
.graph .label { fill: var(--muted); font-size: 9.5px; paint-order: stroke; stroke: var(--panel); stroke-width: 3px; }
.graph .label.added { fill: var(--text); }
.graph .head { fill: var(--edge); }
@media (max-width: 48rem) {
  .graph .wide { display: none; }
  .graph .tall { display: block; }
}
@media print {
  .graph .wide { display: none; }
  .graph .tall { display: block; max-height: 24cm; max-width: 100%; }
}
)css";

// A name in lines of at most `most` characters, cut behind "_" and blanks; what does not fit ends
// with an ellipsis.
std::vector<std::string> wrapped(const std::string& name, std::size_t most, std::size_t lines) {
    std::vector<std::string> result(1);
    std::string word;
    const auto flush = [&] {
        if (!result.back().empty() && result.back().size() + word.size() > most)
            result.emplace_back();
        result.back() += word;
        word.clear();
    };
    for (char c : name) {
        word += c;
        if (c == '_' || c == ' ')
            flush();
    }
    flush();
    if (result.size() > lines) {
        result.resize(lines);
        result.back() = result.back().substr(0, most - 1) + "…";
    }
    return result;
}

std::string joined(const std::vector<std::string>& tensors) {
    // A tensor and its scale are one thing to a reader.
    std::string text;
    for (const std::string& tensor : tensors)
        if (!tensor.ends_with("_scale"))
            text += fmt::format("{}{}", text.empty() ? "" : ", ", tensor);
    return text;
}

std::string rect(std::string_view name, const Rect& place, double radius) {
    return fmt::format(
        R"(<rect class="{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" rx="{}"/>)", name,
        place.x, place.y, place.width, place.height, radius);
}

std::string text_at(std::string_view name, double x, double y, std::string_view content,
                    std::string_view anchor = "start") {
    return fmt::format(R"(<text class="{}" x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>)", name,
                       x, y, anchor, html_escape(content));
}

// A line with rounded corners.
std::string path_of(const std::vector<Point>& points) {
    constexpr double kRadius = 5;
    std::string d = fmt::format("M{:.1f} {:.1f}", points[0].x, points[0].y);
    for (std::size_t i = 1; i + 1 < points.size(); ++i) {
        const Point &a = points[i - 1], &b = points[i], &c = points[i + 1];
        const double before = std::hypot(b.x - a.x, b.y - a.y);
        const double after = std::hypot(c.x - b.x, c.y - b.y);
        const double r = std::min({kRadius, before / 2, after / 2});
        const auto toward = [&](const Point& to, double length) {
            return Point{b.x + (to.x - b.x) / length * r, b.y + (to.y - b.y) / length * r};
        };
        const Point in = toward(a, before), out = toward(c, after);
        d += fmt::format("L{:.1f} {:.1f}Q{:.1f} {:.1f} {:.1f} {:.1f}", in.x, in.y, b.x, b.y, out.x,
                         out.y);
    }
    return d + fmt::format("L{:.1f} {:.1f}", points.back().x, points.back().y);
}

std::string arrow_head(const Point& tip, Flow flow) {
    return flow == Flow::kWide
               ? fmt::format(R"(<path class="head" d="M{0:.1f} {1:.1f}l-6 -3v6z"/>)", tip.x, tip.y)
               : fmt::format(R"(<path class="head" d="M{0:.1f} {1:.1f}l-3 -6h6z"/>)", tip.x, tip.y);
}

// A wider band shrinks to the page as far as its text can still be read; the rest scrolls.
constexpr double kScreen = 1200, kLeastScale = 0.75; // CSS pixels

class BandWriter {
  public:
    BandWriter(const Band& band, const GraphSection& section, Flow flow)
        : band_(band), section_(section), flow_(flow) {
        for (const GraphBox& box : section.boxes)
            largest_ = std::max(largest_, box.counted ? box.floor.us : 0);
    }

    std::string write() {
        const bool wide = flow_ == Flow::kWide && band_.width > kScreen;
        std::string svg = fmt::format(
            R"(<svg class="{}" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {:.0f} {:.0f}" width="{:.0f}" height="{:.0f}"{} role="group" aria-label="{}">)"
            "\n",
            flow_ == Flow::kTall ? "tall" : (wide ? "wide long" : "wide"), band_.width,
            band_.height, band_.width, band_.height,
            wide ? fmt::format(R"( style="min-width:{:.0f}px")", band_.width * kLeastScale) : "",
            html_escape(label()));
        for (const Band::Strip& strip : band_.strips)
            svg += rect("strip", strip.place, 6) +
                   text_at("strip-name", strip.place.x + 6, strip.place.y + 13,
                           fmt::format("lane {}", lane_name(strip.lane))) +
                   "\n";
        for (const Wire& wire : band_.wires)
            svg += this->wire(wire);
        for (const Cell& cell : band_.cells)
            svg += this->cell(cell);
        for (const Wire& wire : band_.wires)
            svg += wire_label(wire);
        return svg + "</svg>\n";
    }

  private:
    std::string label() const {
        return fmt::format("{}{}{}", section_.title, band_.title.empty() ? "" : ", ", band_.title);
    }

    std::string wire(const Wire& wire) const {
        const std::string ends = fmt::format("{} to {}: {}", end_name(wire.from), end_name(wire.to),
                                             fmt::join(wire.tensors, ", "));
        return fmt::format(R"(<g><title>{}</title><path class="wire{}{}" d="{}"/>{}</g>)"
                           "\n",
                           html_escape(ends), wire.on_path ? " path" : "",
                           wire.added ? " added" : "", path_of(wire.points),
                           arrow_head(wire.points.back(), flow_));
    }

    std::string wire_label(const Wire& wire) const {
        if (!wire.label)
            return "";
        std::string name = joined(wire.names);
        if (wire.added)
            name += " (not in the traced chart)";
        if (flow_ == Flow::kTall && !wire.added && name.size() > 10)
            return ""; // no room beside a vertical line
        return text_at(wire.added ? "label added" : "label", wire.label->x + 2, wire.label->y - 3,
                       name) +
               "\n";
    }

    std::string end_name(std::int32_t cell) const {
        const Cell& end = band_.cells[static_cast<std::size_t>(cell)];
        return end.box < 0 ? end.outside : section_.boxes[static_cast<std::size_t>(end.box)].number;
    }

    std::string cell(const Cell& cell) const {
        if (cell.box < 0) {
            const double x = cell.place.x + cell.place.width / 2;
            const double y = cell.place.y + cell.place.height / 2 + 4;
            return fmt::format(R"(<g class="outside">{}{}</g>)"
                               "\n",
                               rect("body", cell.place, 5),
                               text_at("name", x, y, outside_name(cell), "middle"));
        }
        const GraphBox& box = section_.boxes[static_cast<std::size_t>(cell.box)];
        std::string classes =
            fmt::format("{}{}{}{}{}", bound_name(box.floor.bound), box.on_path ? " path" : "",
                        box.communicates ? " comm" : "", box.alias() ? " alias" : "",
                        cell.ghost ? " ghost" : "");
        return fmt::format(R"(<a href="#{}" class="{}" aria-label="{}"><title>{}</title>{}</a>)"
                           "\n",
                           box_anchor(section_, cell.box), classes, html_escape(box_summary(box)),
                           html_escape(box_summary(box)),
                           cell.ghost ? ghost(cell, box) : content(cell, box));
    }

    std::string outside_name(const Cell& cell) const {
        const bool layer = section_.label.starts_with('L');
        if (cell.outside == "before")
            return layer ? "from before" : "inputs";
        return layer ? "next layer" : "layers";
    }

    std::string ghost(const Cell& cell, const GraphBox& box) const {
        const double x = cell.place.x + 7;
        std::string svg =
            rect("body", cell.place, 5) + text_at("number", x, cell.place.y + 15, box.number);
        double y = cell.place.y + 28;
        for (const std::string& line : wrapped(box.name, line_length(cell), 2)) {
            svg += text_at("name", x, y, line);
            y += 11.5;
        }
        return svg;
    }

    std::size_t line_length(const Cell& cell) const {
        return static_cast<std::size_t>((cell.place.width - 10) / 6.3);
    }

    std::string content(const Cell& cell, const GraphBox& box) const {
        const Rect& place = cell.place;
        const double share = largest_ > 0 && box.counted ? box.floor.us / largest_ : 0;
        std::string svg = rect("body", place, 5);
        svg += fmt::format(
            R"(<rect class="heat" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" rx="4" opacity="{:.2f}"/>)",
            place.x + 1.5, place.y + 1.5, place.width - 3, place.height - 3,
            0.35 * std::sqrt(share));
        // Beside its number while there is room, else at the foot.
        const std::string time = time_text(box);
        const double used = 6.6 * static_cast<double>(character_count(time)) +
                            8.7 * static_cast<double>(box.number.size());
        const bool beside = used + 18 <= place.width;
        const auto most = static_cast<std::size_t>((place.width - 14) / 8.7);
        svg += text_at("number", place.x + 7, place.y + 15, shortened(box.number, most));
        svg += beside ? text_at("time", place.x + place.width - 7, place.y + 15, time, "end")
                      : text_at("time", place.x + 7, place.y + place.height - 13, time);
        if (box.communicates)
            svg += communication_tag(place);
        double y = place.y + 29;
        for (const std::string& line :
             wrapped(box.name, line_length(cell), box.communicates || !beside ? 3 : 4)) {
            svg += text_at("name", place.x + 7, y, line);
            y += 11.5;
        }
        if (share > 0.005)
            svg += rect("bar",
                        {place.x + 6, place.y + place.height - 7,
                         std::max(1.0, (place.width - 12) * share), 4},
                        1);
        return svg;
    }

    static std::string communication_tag(const Rect& place) {
        const double x = place.x + place.width - 40, y = place.y + place.height - 23;
        return rect("tag", {x, y, 34, 13}, 6) +
               text_at("tag-name", x + 17, y + 10, "comm", "middle");
    }

    static std::string shortened(const std::string& text, std::size_t most) {
        return text.size() <= most ? text : text.substr(0, most - 1) + "…";
    }

    static std::string time_text(const GraphBox& box) {
        if (box.alias())
            return "alias";
        return box.counted ? microseconds_text(box.floor.us) + " µs" : "before";
    }

    const Band& band_;
    const GraphSection& section_;
    Flow flow_;
    double largest_ = 0;
};

} // namespace

std::string box_anchor(const GraphSection& section, std::int32_t box) {
    return fmt::format("{}-{}", section.id, box + 1);
}

std::string box_summary(const GraphBox& box) {
    if (box.alias())
        return fmt::format("{} {}: alias, no launch with one rank", box.number, box.name);
    return fmt::format("{} {}: at least {} us by {}{}", box.number, box.name,
                       microseconds_text(box.floor.us), bound_name(box.floor.bound),
                       box.communicates ? ", communicates" : "");
}

std::string band_svg(const Band& band, const GraphSection& section, Flow flow) {
    return BandWriter(band, section, flow).write();
}

std::string_view graph_style() {
    return kStyle;
}

} // namespace lr::report
