// SPDX-License-Identifier: Apache-2.0
//
// report/graph_svg.h: a band of a graph as inline SVG. Colours are the page's variables
// (report/html_page.h) and the classes of graph_style().
#pragma once

#include "report/graph_layout.h"

#include <string>

namespace lr::report {

// Where the details of a box are on the page: "decode-gdn-7".
std::string box_anchor(const GraphSection& section, std::int32_t box);

// "8 output_rmsnorm_silu_gate: 0.31 us by memory": a box in one line, for screen readers and tips.
std::string box_summary(const GraphBox& box);

// Every box is a link to its details, with its number, floor, name and a bar: its share of the
// largest floor of the section.
std::string band_svg(const Band& band, const GraphSection& section, Flow flow);

// The CSS that band_svg's classes need.
std::string_view graph_style();

} // namespace lr::report
