// SPDX-License-Identifier: Apache-2.0
#include "report/graph_layout.h"

#include "core/check.h"

#include <algorithm>
#include <map>
#include <set>

namespace lr::report {
namespace {

// Lengths along the flow and across it.
struct Measures {
    double box_along, box_across;
    double gutter;  // between columns
    double gap;     // between tracks
    double channel; // between channels
    double margin;
    double heading, lead; // room for a lane's name: across, along
    double port;          // between wires that enter one box
};
constexpr Measures kWideMeasures{.box_along = 126,
                                 .box_across = 90,
                                 .gutter = 36,
                                 .gap = 18,
                                 .channel = 11,
                                 .margin = 12,
                                 .heading = 18,
                                 .lead = 0,
                                 .port = 9};
constexpr Measures kTallMeasures{.box_along = 84,
                                 .box_across = 104,
                                 .gutter = 34,
                                 .gap = 12,
                                 .channel = 8,
                                 .margin = 6,
                                 .heading = 4,
                                 .lead = 20,
                                 .port = 9};

std::size_t at(std::int32_t index) {
    return static_cast<std::size_t>(index);
}

// The box with the layer's second norm, which the feed-forward half begins with; -1: none.
std::int32_t cut_of(const GraphSection& section, const graph::Step& step) {
    for (std::size_t b = 0; b < section.boxes.size(); ++b)
        for (std::int32_t id : section.boxes[b].nodes) {
            const graph::Node& node = step.nodes[at(id)];
            if (node.layer >= 0 && node.number > 1 && section.boxes[b].counted &&
                node.id.starts_with(section.label + ".") &&
                std::holds_alternative<ops::AddRmsnormArgs>(node.args))
                return static_cast<std::int32_t>(b);
        }
    return -1;
}

std::vector<bool> reached_from(const GraphSection& section, std::int32_t box) {
    std::vector<bool> reached(section.boxes.size(), false);
    std::vector<std::int32_t> todo = {box};
    while (!todo.empty()) {
        const std::int32_t from = todo.back();
        todo.pop_back();
        for (const GraphArrow& arrow : section.arrows)
            if (arrow.from == from && arrow.to >= 0 && !reached[at(arrow.to)]) {
                reached[at(arrow.to)] = true;
                todo.push_back(arrow.to);
            }
    }
    return reached;
}

// Horizontal stretches that must not overlap: lines in a row of cells, or channels.
struct Stretch {
    std::int32_t first, last, source;
};

bool is_free(const std::vector<Stretch>& taken, const Stretch& wanted) {
    return std::none_of(taken.begin(), taken.end(), [&](const Stretch& other) {
        return other.source != wanted.source && other.first <= wanted.last &&
               wanted.first <= other.last;
    });
}

class BandBuilder {
  public:
    BandBuilder(const GraphSection& section, Flow flow)
        : section_(section), flow_(flow), m_(flow == Flow::kWide ? kWideMeasures : kTallMeasures) {}

    // `members`: boxes of the band. `ghost`: the box of the band before that it begins with.
    // `continues`: the box that the next band begins with, so that it shows what goes further.
    Band build(std::string title, const std::vector<bool>& members, std::int32_t ghost,
               std::int32_t continues) {
        band_ = {.title = std::move(title)};
        add_cells(members, ghost);
        add_wires(members, ghost, continues);
        place_columns();
        place_tracks();
        route();
        place_cells();
        draw();
        return std::move(band_);
    }

  private:
    struct Route {
        std::int32_t channel = -1; // >= 0: runs there; else along `track`
        std::int32_t track = 0;
        double leave = 0, enter = 0; // along: where it changes tracks
    };

    // --- who is there ---

    void add_cells(const std::vector<bool>& members, std::int32_t ghost) {
        cell_of_.assign(section_.boxes.size(), -1);
        if (ghost >= 0)
            add_cell({.box = ghost, .ghost = true});
        for (std::size_t b = 0; b < members.size(); ++b)
            if (members[b])
                add_cell({.box = static_cast<std::int32_t>(b)});
    }

    std::int32_t add_cell(Cell cell) {
        const auto id = static_cast<std::int32_t>(band_.cells.size());
        if (cell.box >= 0)
            cell_of_[at(cell.box)] = id;
        band_.cells.push_back(std::move(cell));
        return id;
    }

    // A box of one's own for what comes from outside, one for what goes there.
    std::int32_t outside_cell(const std::string& text) {
        for (std::size_t c = 0; c < band_.cells.size(); ++c)
            if (band_.cells[c].box < 0 && band_.cells[c].outside == text)
                return static_cast<std::int32_t>(c);
        return add_cell({.outside = text});
    }

    void add_wires(const std::vector<bool>& members, std::int32_t ghost, std::int32_t continues) {
        std::map<std::pair<std::int32_t, std::int32_t>, Wire> wires;
        for (const GraphArrow& arrow : section_.arrows) {
            const bool from_here =
                arrow.from >= 0 && (members[at(arrow.from)] || arrow.from == ghost);
            const bool to_here = arrow.to >= 0 && members[at(arrow.to)];
            std::int32_t from = from_here ? cell_of_[at(arrow.from)] : -1;
            std::int32_t to = to_here ? cell_of_[at(arrow.to)] : -1;
            if (arrow.from < 0 && to_here)
                from = outside_cell("before");
            else if (arrow.to < 0 && from_here && arrow.from != continues)
                to = outside_cell("after");
            if (from < 0 || to < 0)
                continue;
            Wire& wire = wires[{from, to}];
            wire.from = from;
            wire.to = to;
            wire.added = wire.added || arrow.added;
            for (const std::string& tensor : arrow.tensors)
                if (std::find(wire.tensors.begin(), wire.tensors.end(), tensor) ==
                    wire.tensors.end())
                    wire.tensors.push_back(tensor);
        }
        for (auto& [ends, wire] : wires)
            band_.wires.push_back(std::move(wire));
    }

    const GraphBox* box_of(const Cell& cell) const {
        return cell.box < 0 ? nullptr : &section_.boxes[at(cell.box)];
    }

    // --- columns and tracks ---

    void place_columns() {
        // Longest distance from a beginning; cells are few, so until nothing moves.
        for (bool moved = true; moved;) {
            moved = false;
            for (const Wire& wire : band_.wires) {
                const std::int32_t least = band_.cells[at(wire.from)].column + 1;
                if (band_.cells[at(wire.to)].column < least) {
                    band_.cells[at(wire.to)].column = least;
                    moved = true;
                }
            }
        }
        // What needs nobody stands right before who needs it.
        for (std::size_t c = 0; c < band_.cells.size(); ++c) {
            const auto id = static_cast<std::int32_t>(c);
            std::int32_t first = -1;
            bool needs = false;
            for (const Wire& wire : band_.wires) {
                needs = needs || wire.to == id;
                if (wire.from == id && (first < 0 || band_.cells[at(wire.to)].column < first))
                    first = band_.cells[at(wire.to)].column;
            }
            if (!needs && first > 0)
                band_.cells[c].column = first - 1;
        }
        for (const Cell& cell : band_.cells)
            columns_ = std::max(columns_, cell.column + 1);
    }

    bool shared_lane(const Cell& cell) const {
        const GraphBox* box = box_of(cell);
        return box && !cell.ghost && box->lane == graph::Lane::kShared;
    }
    // Keeps its lane's first track.
    bool leads(const Cell& cell) const {
        const GraphBox* box = box_of(cell);
        return !box || cell.ghost || box->on_path;
    }

    // Per lane: cells that lead first, then column by column, each where its producer stands if
    // that is free.
    void place_tracks() {
        std::vector<std::int32_t> order(band_.cells.size());
        for (std::size_t c = 0; c < order.size(); ++c)
            order[c] = static_cast<std::int32_t>(c);
        std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
            const Cell &x = band_.cells[at(a)], &y = band_.cells[at(b)];
            return std::pair(!leads(x), x.column) < std::pair(!leads(y), y.column);
        });
        std::array<std::vector<std::set<std::int32_t>>, graph::kLanes> taken;
        std::vector<std::int32_t> track(band_.cells.size(), -1);
        for (std::int32_t id : order) {
            const Cell& cell = band_.cells[at(id)];
            auto& tracks = taken[shared_lane(cell) ? 1 : 0];
            std::int32_t chosen = -1;
            for (const Wire& wire : band_.wires)
                if (wire.to == id && track[at(wire.from)] > 0 &&
                    shared_lane(band_.cells[at(wire.from)]) == shared_lane(cell) &&
                    !tracks[at(track[at(wire.from)])].contains(cell.column))
                    chosen = track[at(wire.from)];
            for (std::int32_t t = 0; chosen < 0; ++t) {
                if (t == static_cast<std::int32_t>(tracks.size()))
                    tracks.emplace_back();
                if (!tracks[at(t)].contains(cell.column))
                    chosen = t;
            }
            tracks[at(chosen)].insert(cell.column);
            track[at(id)] = chosen;
        }
        lane_tracks_ = {static_cast<std::int32_t>(taken[0].size()),
                        static_cast<std::int32_t>(taken[1].size())};
        for (std::size_t c = 0; c < band_.cells.size(); ++c)
            band_.cells[c].track = track[c] + (shared_lane(band_.cells[c]) ? lane_tracks_[0] : 0);
    }

    // --- wires ---

    bool cells_free(std::int32_t track, std::int32_t first, std::int32_t last) const {
        return std::none_of(band_.cells.begin(), band_.cells.end(), [&](const Cell& cell) {
            return cell.track == track && cell.column >= first && cell.column <= last;
        });
    }

    void route() {
        const std::int32_t tracks = lane_tracks_[0] + lane_tracks_[1];
        std::vector<std::vector<Stretch>> in_track(at(tracks));
        for (const Wire& wire : band_.wires) {
            const Cell &from = band_.cells[at(wire.from)], &to = band_.cells[at(wire.to)];
            const Stretch between{from.column + 1, to.column - 1, wire.from};
            Route route{.track = from.track};
            if (between.first <= between.last) {
                route.track = -1;
                for (std::int32_t track : {to.track, from.track})
                    if (cells_free(track, between.first, between.last) &&
                        is_free(in_track[at(track)], between))
                        route.track = track;
                if (route.track >= 0)
                    in_track[at(route.track)].push_back(between);
                else
                    route.channel = channel_for(between);
            }
            routes_.push_back(route);
        }
        find_crossings();
    }

    std::int32_t channel_for(const Stretch& wanted) {
        for (std::size_t c = 0; c < channels_.size(); ++c)
            for (const Stretch& other : channels_[c])
                if (other.source == wanted.source && is_free(channels_[c], wanted)) {
                    channels_[c].push_back(wanted);
                    return static_cast<std::int32_t>(c);
                }
        for (std::size_t c = 0;; ++c) {
            if (c == channels_.size())
                channels_.emplace_back();
            if (is_free(channels_[c], wanted)) {
                channels_[c].push_back(wanted);
                return static_cast<std::int32_t>(c);
            }
        }
    }

    double column_start(std::int32_t column) const {
        return m_.margin + m_.lead + column * (m_.box_along + m_.gutter);
    }

    // In each gutter every change of track has a line of its own: one for each source that leaves
    // there, one for each wire from further away that enters.
    void find_crossings() {
        std::vector<std::vector<std::pair<std::int32_t, std::int32_t>>> lines(at(columns_ + 1));
        const auto line_of = [&](std::int32_t gutter, std::pair<std::int32_t, std::int32_t> key) {
            auto& keys = lines[at(gutter)];
            const auto found = std::find(keys.begin(), keys.end(), key);
            if (found == keys.end())
                keys.push_back(key);
        };
        const auto key_in = [&](std::size_t w) {
            return std::pair(band_.wires[w].from,
                             routes_[w].channel >= 0 ? -2 - routes_[w].channel : routes_[w].track);
        };
        for (std::size_t w = 0; w < routes_.size(); ++w) {
            const Cell &from = band_.cells[at(band_.wires[w].from)],
                       &to = band_.cells[at(band_.wires[w].to)];
            line_of(from.column + 1, {band_.wires[w].from, -1});
            if (to.column > from.column + 1)
                line_of(to.column, key_in(w));
        }
        const auto place = [&](std::int32_t gutter, std::pair<std::int32_t, std::int32_t> key) {
            const auto& keys = lines[at(gutter)];
            const auto index = std::find(keys.begin(), keys.end(), key) - keys.begin();
            return column_start(gutter) - m_.gutter +
                   (m_.gutter - 8) * static_cast<double>(index + 1) /
                       static_cast<double>(keys.size() + 1);
        };
        for (std::size_t w = 0; w < routes_.size(); ++w) {
            const Cell &from = band_.cells[at(band_.wires[w].from)],
                       &to = band_.cells[at(band_.wires[w].to)];
            routes_[w].leave = place(from.column + 1, {band_.wires[w].from, -1});
            routes_[w].enter =
                to.column > from.column + 1 ? place(to.column, key_in(w)) : routes_[w].leave;
        }
    }

    // --- places ---

    // Across: the heading, the channels, then the lanes with their tracks.
    double channel_across(std::int32_t channel) const {
        return m_.margin + m_.heading + m_.channel * (channel + 0.5);
    }
    double track_start(std::int32_t track) const {
        const double channels = m_.channel * static_cast<double>(channels_.size());
        const bool shared = track >= lane_tracks_[0];
        return m_.margin + m_.heading + channels + m_.gap / 2 + track * (m_.box_across + m_.gap) +
               (shared ? m_.heading + m_.gap : 0);
    }

    Rect oriented(double along, double across, double length, double breadth) const {
        return flow_ == Flow::kWide ? Rect{along, across, length, breadth}
                                    : Rect{across, along, breadth, length};
    }
    Point oriented(double along, double across) const {
        return flow_ == Flow::kWide ? Point{along, across} : Point{across, along};
    }

    void place_cells() {
        for (Cell& cell : band_.cells) {
            const bool small = cell.box < 0 || cell.ghost;
            const double inset = small ? m_.box_across * 0.2 : 0;
            cell.place = oriented(column_start(cell.column), track_start(cell.track) + inset,
                                  m_.box_along, m_.box_across - 2 * inset);
        }
        const double length = column_start(columns_) - m_.gutter + m_.margin;
        const std::int32_t tracks = lane_tracks_[0] + lane_tracks_[1];
        const double breadth = track_start(tracks - 1) + m_.box_across + m_.gap / 2 + m_.margin;
        std::tie(band_.width, band_.height) =
            flow_ == Flow::kWide ? std::pair(length, breadth) : std::pair(breadth, length);
        double from = m_.margin;
        for (std::size_t lane = 0; lane < graph::kLanes; ++lane) {
            if (lane_tracks_[lane] == 0)
                continue;
            const std::int32_t last = lane == 0 ? lane_tracks_[0] - 1 : tracks - 1;
            const double to = track_start(last) + m_.box_across + m_.gap / 2;
            band_.strips.push_back({static_cast<graph::Lane>(lane),
                                    oriented(m_.margin / 2, from, length - m_.margin, to - from)});
            from = to + m_.gap / 2;
        }
    }

    double middle(const Cell& cell) const { return track_start(cell.track) + m_.box_across / 2; }

    // Where a wire runs, across.
    double run_across(std::size_t w) const {
        if (routes_[w].channel >= 0)
            return channel_across(routes_[w].channel);
        return track_start(routes_[w].track) + m_.box_across / 2;
    }

    // Wires that enter one box, from the nearest channel to the farthest track.
    std::vector<double> entries() const {
        std::vector<double> across(routes_.size());
        std::map<std::int32_t, std::vector<std::size_t>> into;
        for (std::size_t w = 0; w < routes_.size(); ++w)
            into[band_.wires[w].to].push_back(w);
        for (auto& [cell, wires] : into) {
            std::stable_sort(wires.begin(), wires.end(), [&](std::size_t a, std::size_t b) {
                return run_across(a) < run_across(b);
            });
            for (std::size_t i = 0; i < wires.size(); ++i)
                across[wires[i]] =
                    middle(band_.cells[at(cell)]) +
                    m_.port * (static_cast<double>(i) - static_cast<double>(wires.size() - 1) / 2);
        }
        return across;
    }

    // The first wire of a line that several of one source share carries the names of all.
    void label(std::size_t w, Point place) {
        Wire& wire = band_.wires[w];
        for (std::size_t other = 0; other < w; ++other) {
            Wire& first = band_.wires[other];
            if (first.from != wire.from || !first.label ||
                routes_[other].channel != routes_[w].channel ||
                routes_[other].track != routes_[w].track)
                continue;
            for (const std::string& tensor : wire.tensors)
                if (std::find(first.names.begin(), first.names.end(), tensor) == first.names.end())
                    first.names.push_back(tensor);
            return;
        }
        wire.label = place;
        wire.names = wire.tensors;
    }

    void draw() {
        const std::vector<double> entry = entries();
        for (std::size_t w = 0; w < routes_.size(); ++w) {
            Wire& wire = band_.wires[w];
            const Cell &from = band_.cells[at(wire.from)], &to = band_.cells[at(wire.to)];
            const double begin = column_start(from.column) + m_.box_along;
            const double end = column_start(to.column);
            const bool far = to.column > from.column + 1;
            const double run = far ? run_across(w) : entry[w];
            std::vector<std::pair<double, double>> path = {
                {begin, middle(from)}, {routes_[w].leave, middle(from)}, {routes_[w].leave, run}};
            if (far)
                path.insert(path.end(), {{routes_[w].enter, run}, {routes_[w].enter, entry[w]}});
            path.emplace_back(end, entry[w]);
            for (const auto& [along, across] : path) {
                const Point point = oriented(along, across);
                if (wire.points.empty() || wire.points.back().x != point.x ||
                    wire.points.back().y != point.y)
                    wire.points.push_back(point);
            }
            if (far)
                label(w, oriented(routes_[w].leave + 4, run));
            const GraphBox *a = box_of(from), *b = box_of(to);
            wire.on_path = a && b && a->on_path && b->on_path && !far;
        }
    }

    const GraphSection& section_;
    Flow flow_;
    const Measures& m_;
    Band band_;
    std::vector<std::int32_t> cell_of_; // of each box
    std::int32_t columns_ = 0;
    std::array<std::int32_t, graph::kLanes> lane_tracks_{};
    std::vector<Route> routes_; // of each wire
    std::vector<std::vector<Stretch>> channels_;
};

} // namespace

std::vector<Band> lay_out(const GraphSection& section, const graph::Step& step, Flow flow) {
    const std::int32_t cut = cut_of(section, step);
    std::vector<bool> second(section.boxes.size(), false);
    if (cut >= 0)
        second = reached_from(section, cut);
    std::vector<bool> first(second.size());
    for (std::size_t b = 0; b < second.size(); ++b)
        first[b] = !second[b];
    std::vector<Band> bands;
    bands.push_back(
        BandBuilder(section, flow).build(cut >= 0 ? "token mixing" : "", first, -1, cut));
    if (cut >= 0)
        bands.push_back(BandBuilder(section, flow).build("feed-forward", second, cut, -1));
    return bands;
}

} // namespace lr::report
