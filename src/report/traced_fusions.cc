// SPDX-License-Identifier: Apache-2.0
#include "report/traced_fusions.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

namespace lr::report {
namespace {

using graph::RewriteKind;
using Rows = std::vector<std::int32_t>;

std::size_t at(std::int32_t row) {
    return static_cast<std::size_t>(row);
}

class TracedStep {
  public:
    TracedStep(const graph::Step& step, const graph::Machine& machine,
               const trace::Analysis& analysis)
        : step_(step), machine_(machine), analysis_(analysis) {
        std::vector<graph::Span> spans;
        for (std::size_t r = 0; r < analysis.rows.size(); ++r) {
            const trace::Row& row = analysis.rows[r];
            by_place_[{row.layer, row.nodes}] = static_cast<std::int32_t>(r);
            spans.push_back({row.start_us, row.end_us});
        }
        timed_ = graph::timed_nodes(spans, edges_without({}));
    }

    Result<std::optional<TracedFusion>> of(const graph::Rewrite& rewrite) const {
        const auto matches = graph::find_matches(step_, rewrite);
        if (matches.empty())
            return std::optional<TracedFusion>();
        LR_TRY_ASSIGN(const graph::Plan plan,
                      graph::apply_rewrite(step_, graph::reference_plan(step_), rewrite.name));
        TracedFusion sum{.slack_us = -1};
        for (const auto& nodes : matches)
            if (const Rows rows = rows_of(nodes);
                !rows.empty() && (rows.size() > 1 || rewrite.kind == RewriteKind::kMove))
                LR_TRY(add(rewrite, floor_of(plan, nodes), rows, sum));
        if (sum.places == 0)
            return std::optional<TracedFusion>();
        return std::optional(sum);
    }

  private:
    // The rows of these nodes, each a launch of its own; none when the trace lacks one.
    Rows rows_of(const std::vector<std::int32_t>& nodes) const {
        std::set<std::int32_t> rows;
        for (std::int32_t id : nodes) {
            const graph::Node& node = step_.nodes[at(id)];
            const auto found = by_place_.find({node.layer, std::to_string(node.number)});
            if (found == by_place_.end())
                return {};
            rows.insert(found->second);
        }
        return Rows(rows.begin(), rows.end());
    }

    double floor_of(const graph::Plan& plan, const std::vector<std::int32_t>& nodes) const {
        double us = 0;
        for (std::size_t i = 0; i < plan.launches.size(); ++i)
            if (std::binary_search(nodes.begin(), nodes.end(), plan.launches[i].nodes.back()))
                us += graph::floor_of(machine_, graph::launch_work(step_, plan, i)).us;
        return us;
    }

    // Data, and the order of each lane, in which the rows of `out` have no place.
    std::vector<graph::Dependency> edges_without(const Rows& out) const {
        std::set<graph::Dependency> edges(analysis_.data.begin(), analysis_.data.end());
        std::map<std::string, std::int32_t> last;
        for (std::size_t r = 0; r < analysis_.rows.size(); ++r) { // by start
            const auto row = static_cast<std::int32_t>(r);
            if (std::find(out.begin(), out.end(), row) != out.end())
                continue;
            const auto [before, first] = last.emplace(analysis_.rows[r].lane, row);
            if (!first)
                edges.insert({before->second, row});
            before->second = row;
        }
        return {edges.begin(), edges.end()};
    }

    bool on_path(std::int32_t row) const {
        const auto& path = analysis_.path.nodes;
        return std::find(path.begin(), path.end(), row) != path.end();
    }

    // What the span shrinks by when `rows` become one launch of this duration: in the place of the
    // last of them, or of the first where others between them wait for it, or of none.
    Result<double> saved(const Rows& rows, bool moves, double duration_us) const {
        const std::array<Rows, 3> out = {Rows(rows.begin(), rows.end() - 1),
                                         Rows(rows.begin() + 1, rows.end()), rows};
        for (std::size_t place = moves ? 2 : 0;; ++place) {
            const auto path =
                graph::merged_path(timed_, edges_without(out[place]), rows, duration_us);
            if (path)
                return std::max(0.0, analysis_.path.length_us - path->length_us);
            if (place + 1 == out.size())
                return fail(path.error());
        }
    }

    Status add(const graph::Rewrite& rewrite, double floor_us, const Rows& rows,
               TracedFusion& sum) const {
        double longest = 0, all = 0;
        bool critical = false;
        for (std::int32_t row : rows) {
            const double duration = analysis_.rows[at(row)].duration_us;
            longest = std::max(longest, duration);
            all += duration;
            critical = critical || on_path(row);
            const double slack = analysis_.path.slack_us[at(row)];
            sum.slack_us = sum.slack_us < 0 ? slack : std::min(sum.slack_us, slack);
        }
        const bool moves = rewrite.kind == RewriteKind::kMove;
        // A move keeps its time, a shift both launches and the way from one to the other: whether
        // they get faster is not for a trace to say.
        const bool shifts = rewrite.kind == RewriteKind::kShift;
        const double between = shifts ? timed_[at(rows.back())].gap_us : 0;
        LR_TRY_ASSIGN(const double least, saved(rows, moves, shifts ? all + between : longest));
        LR_TRY_ASSIGN(const double most, saved(rows, moves, moves ? longest : floor_us + between));
        ++sum.places;
        sum.on_path += critical;
        sum.sum_us += all;
        sum.longest_stays_us += least;
        sum.at_floor_us += std::max(least, most);
        return {};
    }

    const graph::Step& step_;
    const graph::Machine& machine_;
    const trace::Analysis& analysis_;
    std::map<std::pair<std::int32_t, std::string>, std::int32_t> by_place_;
    std::vector<graph::TimedNode> timed_;
};

} // namespace

Status add_trace(std::vector<FusionRow>& rows, const graph::Step& step,
                 const graph::Machine& machine, const trace::Analysis& analysis) {
    const TracedStep traced(step, machine, analysis);
    for (FusionRow& row : rows) {
        LR_TRY_ASSIGN(row.traced, traced.of(*row.rewrite));
    }
    return {};
}

} // namespace lr::report
