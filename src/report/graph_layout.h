// SPDX-License-Identifier: Apache-2.0
//
// report/graph_layout.h: where the boxes and wires of a section are drawn.
//
// A section is cut into bands at its second norm: the mixing of tokens, then the feed-forward half,
// which begins with a copy of that norm (a ghost). In a band, time runs along it: a box stands in
// the column after the last box that it needs. Across it, each lane has its tracks; the longest
// path keeps the first one. A wire runs along a track where no box is in its way, else in a channel
// beside the tracks; it changes tracks in the gutters between columns. So no wire crosses a box.
//
// Coordinates: x to the right, y down, in CSS pixels. Wide bands run to the right, for a screen;
// tall ones run down, for a phone or a sheet of paper.
#pragma once

#include "report/graph_view.h"

#include <optional>

namespace lr::report {

struct Point {
    double x = 0, y = 0;
};

struct Rect {
    double x = 0, y = 0, width = 0, height = 0;
};

struct Cell {
    std::int32_t box = -1; // of the section; -1: outside of it
    std::string outside;   // what stands there then: "previous layer"
    bool ghost = false;    // the box itself stands in the band before
    std::int32_t column = 0;
    std::int32_t track = 0; // of the band
    Rect place = {};
};

struct Wire {
    std::int32_t from = 0, to = 0; // cells of the band
    std::vector<std::string> tensors;
    bool added = false;                  // GraphArrow::added
    bool on_path = false;                // both ends are, one behind the other
    std::vector<Point> points;           // corners, at right angles
    std::optional<Point> label = {};     // where names have room, and which: those of all wires
    std::vector<std::string> names = {}; // of one source that share the line
};

struct Band {
    std::string title; // "token mixing"
    std::vector<Cell> cells;
    std::vector<Wire> wires;
    // One strip for each lane that has boxes here, across the whole band.
    struct Strip {
        graph::Lane lane;
        Rect place;
    };
    std::vector<Strip> strips;
    double width = 0, height = 0;
};

enum class Flow { kWide, kTall };

std::vector<Band> lay_out(const GraphSection& section, const graph::Step& step, Flow flow);

} // namespace lr::report
