// SPDX-License-Identifier: Apache-2.0
#include "report/graph_layout.h"
#include "tests/report/graphs.h"

#include <cmath>
#include <map>

namespace lr::report {
namespace {

bool overlap(const Rect& a, const Rect& b) {
    return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height &&
           b.y < a.y + a.height;
}

// The space that a straight piece of wire takes, a hair less than nothing at its ends.
Rect piece(const Point& a, const Point& b) {
    constexpr double kHair = 0.25;
    return {std::min(a.x, b.x) + kHair, std::min(a.y, b.y) + kHair, std::abs(a.x - b.x) - 2 * kHair,
            std::abs(a.y - b.y) - 2 * kHair};
}

bool crosses(const Wire& wire, const Rect& box) {
    for (std::size_t i = 1; i < wire.points.size(); ++i) {
        const Point &a = wire.points[i - 1], &b = wire.points[i];
        EXPECT_TRUE(a.x == b.x || a.y == b.y) << "wires run at right angles";
        Rect space = piece(a, b);
        space.width = std::max(space.width, 0.1);
        space.height = std::max(space.height, 0.1);
        if (overlap(space, box))
            return true;
    }
    return false;
}

void expect_readable(const Band& band) {
    for (std::size_t a = 0; a < band.cells.size(); ++a) {
        const Rect& place = band.cells[a].place;
        EXPECT_GE(place.x, 0);
        EXPECT_GE(place.y, 0);
        EXPECT_LE(place.x + place.width, band.width);
        EXPECT_LE(place.y + place.height, band.height);
        for (std::size_t b = a + 1; b < band.cells.size(); ++b)
            EXPECT_FALSE(overlap(place, band.cells[b].place)) << a << " and " << b;
    }
    for (const Wire& wire : band.wires) {
        ASSERT_GE(wire.points.size(), 2u);
        for (const Point& point : wire.points) {
            EXPECT_GE(std::min(point.x, point.y), 0);
            EXPECT_LE(point.x, band.width);
            EXPECT_LE(point.y, band.height);
        }
        for (const Cell& cell : band.cells)
            EXPECT_FALSE(crosses(wire, cell.place))
                << wire.from << " -> " << wire.to << " crosses box " << cell.box;
        EXPECT_LT(band.cells[static_cast<std::size_t>(wire.from)].column,
                  band.cells[static_cast<std::size_t>(wire.to)].column);
    }
}

// Each box stands once, and each arrow between two boxes is a wire.
void expect_whole(const GraphSection& section, const std::vector<Band>& bands) {
    std::map<std::int32_t, int> boxes;
    std::map<std::pair<std::int32_t, std::int32_t>, int> wires;
    for (const Band& band : bands) {
        for (const Cell& cell : band.cells)
            if (cell.box >= 0 && !cell.ghost)
                ++boxes[cell.box];
        for (const Wire& wire : band.wires)
            ++wires[{band.cells[static_cast<std::size_t>(wire.from)].box,
                     band.cells[static_cast<std::size_t>(wire.to)].box}];
    }
    for (std::size_t b = 0; b < section.boxes.size(); ++b)
        EXPECT_EQ(boxes[static_cast<std::int32_t>(b)], 1) << section.boxes[b].name;
    for (const GraphArrow& arrow : section.arrows)
        if (arrow.from >= 0 && arrow.to >= 0)
            EXPECT_EQ((wires[{arrow.from, arrow.to}]), 1) << arrow.from << " -> " << arrow.to;
}

void expect_drawn(const ViewOf& made) {
    for (const GraphSection& section : made.view->sections)
        for (Flow flow : {Flow::kWide, Flow::kTall}) {
            SCOPED_TRACE(section.title);
            const std::vector<Band> bands = lay_out(section, made.view->step, flow);
            expect_whole(section, bands);
            for (const Band& band : bands)
                expect_readable(band);
        }
}

TEST(GraphLayout, NoBoxAndNoWireIsInAnothersWay) {
    for (const char* path : {"decode", "prefill"})
        for (const auto& [preset, format] :
             {std::pair{"397B-A17B", "nvfp4-mixed"}, {"35B-A3B", "bf16"}, {"27B", "fp8-block"}}) {
            SCOPED_TRACE(fmt::format("{} {} {}", path, preset, format));
            expect_drawn(view_of(preset, format, path));
        }
}

TEST(GraphLayout, DrawsEveryPlan) {
    for (const graph::Rewrite& rewrite : graph::all_rewrites()) {
        SCOPED_TRACE(rewrite.name);
        expect_drawn(view_of("397B-A17B", "nvfp4-mixed", "decode", {rewrite.name.data()}, 2));
    }
    expect_drawn(view_of(
        "397B-A17B", "nvfp4-mixed", "decode",
        {"6+7+8+9", "16+18", "11+13+15", "17+19", "23+24+next.1+next.3", "expand-routed-gate-up"}));
}

TEST(GraphLayout, CutsALayerAtItsSecondNorm) {
    const ViewOf made = view_of("397B-A17B", "nvfp4-mixed", "decode-gdn", {}, 2);
    const GraphSection& section = made.section("decode-gdn");
    const std::vector<Band> bands = lay_out(section, made.view->step, Flow::kWide);
    ASSERT_EQ(bands.size(), 2u);
    EXPECT_EQ(bands[0].title, "token mixing");
    const auto number = [&](const Cell& cell) {
        return section.boxes[static_cast<std::size_t>(cell.box)].number;
    };
    const auto ghost = std::find_if(bands[1].cells.begin(), bands[1].cells.end(),
                                    [](const Cell& cell) { return cell.ghost; });
    ASSERT_NE(ghost, bands[1].cells.end());
    EXPECT_EQ(number(*ghost), "11");
    EXPECT_EQ(ghost->column, 0);
    EXPECT_EQ(bands[1].strips.size(), 2u) << "main and shared";
    EXPECT_EQ(bands[0].strips.size(), 1u);
}

} // namespace
} // namespace lr::report
