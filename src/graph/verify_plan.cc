// SPDX-License-Identifier: Apache-2.0
#include "graph/verify_plan.h"

#include "graph/plan_facts.h"

#include <algorithm>
#include <array>
#include <map>

namespace lr::graph {
namespace {

std::string_view lane_name(Lane lane) {
    return lane == Lane::kMain ? "main" : "shared";
}

class PlanVerifier {
  public:
    explicit PlanVerifier(PlanFacts& facts) : f_(facts), step_(facts.step), plan_(facts.plan) {}

    Status verify() {
        for (std::size_t i = 0; i < plan_.launches.size(); ++i)
            LR_TRY(check_launch(plan_.launches[i], static_cast<std::int32_t>(i)));
        for (std::size_t n = 0; n < step_.nodes.size(); ++n)
            LR_TRY(check_coverage(step_.nodes[n], f_.launches[n]));
        LR_TRY(find_recorders());
        LR_TRY(check_waits());
        find_predecessors();
        LR_TRY(check_cycles());
        LR_TRY(check_lanes());
        derive_order();
        LR_TRY(check_stage_order());
        LR_TRY(check_data());
        LR_TRY(check_swallowed());
        return check_end();
    }

  private:
    Status check_launch(const Launch& launch, std::int32_t id) {
        if (launch.nodes.empty())
            return fail(Code::kInternal, "{}: expected at least one node, got none", launch.name);
        const auto count = static_cast<std::int32_t>(step_.nodes.size());
        for (std::size_t i = 0; i < launch.nodes.size(); ++i) {
            const std::int32_t node = launch.nodes[i];
            if (node < 0 || node >= count)
                return fail(Code::kInternal, "{}: expected nodes 0..{}, got {}", launch.name,
                            count - 1, node);
            if (i > 0 && node <= launch.nodes[i - 1])
                return fail(Code::kInternal,
                            "{}: expected its nodes in the order of the step, got {} after {}",
                            launch.name, node_id(node), node_id(launch.nodes[i - 1]));
            f_.launches[static_cast<std::size_t>(node)].push_back(id);
        }
        for (TensorId tensor : launch.swallowed)
            if (tensor < 0 || tensor >= std::ssize(step_.tensors))
                return fail(Code::kInternal, "{} swallows tensor {}: expected 0..{}", launch.name,
                            tensor, step_.tensors.size() - 1);
        if (static_cast<std::size_t>(launch.lane) >= kLanes)
            return fail(Code::kInternal, "{}: expected one of {} lanes, got lane {}", launch.name,
                        kLanes, static_cast<int>(launch.lane));
        if (launch.grid_sync && !launch.cooperative)
            return fail(Code::kInternal,
                        "{}: its blocks wait for one another: expected a cooperative launch, got a "
                        "plain one",
                        launch.name);
        return {};
    }

    Status check_coverage(const Node& node, const std::vector<std::int32_t>& launches) {
        if (node.alias) {
            if (launches.empty())
                return {};
            return fail(Code::kInternal, "{}: an alias: expected no launch, got {}", node.label(),
                        f_.names(launches));
        }
        if (launches.empty())
            return fail(Code::kInternal, "{}: expected one launch, got none", node.label());
        if (std::any_of(launches.begin(), launches.end(),
                        [&](std::int32_t l) { return is_stage(f_.launch(l), node); }))
            return check_stages(node, launches);
        if (launches.size() > 1)
            return fail(Code::kInternal, "{}: expected one launch, got {}: {}", node.label(),
                        launches.size(), f_.names(launches));
        return {};
    }

    // Whether a launch has a stage of this node and not the whole of it.
    bool is_stage(const Launch& launch, const Node& node) const {
        return launch.stage >= 0 &&
               &node == &step_.nodes[static_cast<std::size_t>(launch.nodes.back())];
    }

    // The rewrite of the plan that gives a node stages; null when none does.
    const Rewrite* stager_of(const Node& node) const {
        const auto applies = [&](const Pattern& pattern) {
            return pattern.phase == step_.shape.phase && node.layer >= 0 &&
                   pattern.layer == step_.layers[static_cast<std::size_t>(node.layer)] &&
                   pattern.numbers.back() == node.number;
        };
        for (const Rewrite& rewrite : all_rewrites())
            if (!rewrite.stages.empty() &&
                std::count(plan_.rewrites.begin(), plan_.rewrites.end(), rewrite.name) != 0 &&
                std::any_of(rewrite.patterns.begin(), rewrite.patterns.end(), applies))
                return &rewrite;
        return nullptr;
    }

    // Stage 0 of a shifted node stands behind another node; every other stage stands alone.
    Status check_stages(const Node& node, const std::vector<std::int32_t>& launches) {
        const Rewrite* stager = stager_of(node);
        if (!stager)
            return fail(Code::kInternal,
                        "{}: no rewrite of the plan expands it: expected one launch, got {}",
                        node.label(), f_.names(launches));
        const auto& stages = stager->stages;
        bool right = launches.size() == stages.size();
        std::string got;
        for (std::size_t i = 0; i < launches.size(); ++i) {
            const Launch& launch = f_.launch(launches[i]);
            const std::size_t nodes = stager->kind == RewriteKind::kShift && i == 0 ? 2 : 1;
            right = right && is_stage(launch, node) &&
                    launch.stage == static_cast<std::int32_t>(i) && launch.nodes.size() == nodes;
            got += fmt::format("{}{}", i == 0 ? "" : ", ", launch.stage);
        }
        if (!right)
            return fail(Code::kInternal,
                        "{}: expected stages 0..{} ({}), each once and in order, got {}",
                        node.label(), stages.size() - 1, fmt::join(stages, ", "), got);
        return {};
    }

    const std::string& node_id(std::int32_t node) const {
        return step_.nodes[static_cast<std::size_t>(node)].id;
    }

    bool is_event(std::int32_t event) const { return event >= 0 && event < plan_.events; }

    Status find_recorders() {
        recorder_.assign(static_cast<std::size_t>(std::max(plan_.events, 0)), -1);
        for (std::size_t i = 0; i < plan_.launches.size(); ++i) {
            const Launch& launch = plan_.launches[i];
            if (launch.event == -1)
                continue;
            if (!is_event(launch.event))
                return fail(Code::kInternal, "{} records event {}: expected 0..{}", launch.name,
                            launch.event, plan_.events - 1);
            std::int32_t& recorder = recorder_[static_cast<std::size_t>(launch.event)];
            if (recorder >= 0)
                return fail(Code::kInternal,
                            "event {}: expected one launch to record it, got {} and {}",
                            launch.event, f_.launch(recorder).name, launch.name);
            recorder = static_cast<std::int32_t>(i);
        }
        return {};
    }

    Status check_waits() const {
        for (const Launch& launch : plan_.launches)
            for (std::int32_t event : launch.waits) {
                if (!is_event(event) || recorder_[static_cast<std::size_t>(event)] < 0)
                    return fail(Code::kInternal,
                                "{} waits for event {}: expected a launch to record it, got none",
                                launch.name, event);
                const Launch& from = f_.launch(recorder_[static_cast<std::size_t>(event)]);
                if (from.lane == launch.lane)
                    return fail(Code::kInternal,
                                "{} waits for event {}: expected it of another lane than its own, "
                                "got {} of lane {}",
                                launch.name, event, from.name, lane_name(from.lane));
            }
        return {};
    }

    // The launch before it in its lane, and those it waits for.
    void find_predecessors() {
        predecessors_.resize(plan_.launches.size());
        std::array<std::int32_t, kLanes> last;
        last.fill(-1);
        for (std::size_t i = 0; i < plan_.launches.size(); ++i) {
            std::int32_t& previous = last[static_cast<std::size_t>(plan_.launches[i].lane)];
            if (previous >= 0)
                predecessors_[i].push_back(previous);
            previous = static_cast<std::int32_t>(i);
            for (std::int32_t event : plan_.launches[i].waits)
                predecessors_[i].push_back(recorder_[static_cast<std::size_t>(event)]);
        }
    }

    // Follows predecessors from each launch; one met again on its own path waits for itself.
    Status check_cycles() const {
        const auto& before = predecessors_;
        enum class Mark : std::uint8_t { kNew, kOpen, kDone };
        std::vector<Mark> marks(before.size(), Mark::kNew);
        std::vector<std::pair<std::int32_t, std::size_t>> path; // launch, next predecessor
        for (std::size_t root = 0; root < before.size(); ++root) {
            if (marks[root] == Mark::kNew)
                path.emplace_back(static_cast<std::int32_t>(root), 0);
            while (!path.empty()) {
                const auto at = static_cast<std::size_t>(path.back().first);
                marks[at] = Mark::kOpen;
                if (path.back().second == before[at].size()) {
                    marks[at] = Mark::kDone;
                    path.pop_back();
                    continue;
                }
                const std::int32_t next = before[at][path.back().second++];
                if (marks[static_cast<std::size_t>(next)] == Mark::kOpen)
                    return cycle(path, next);
                if (marks[static_cast<std::size_t>(next)] == Mark::kNew)
                    path.emplace_back(next, 0);
            }
        }
        return {};
    }

    Failure cycle(const std::vector<std::pair<std::int32_t, std::size_t>>& path,
                  std::int32_t met) const {
        std::string names;
        bool inside = false;
        for (const auto& [launch, next] : path) {
            inside = inside || launch == met;
            if (inside)
                names += f_.launch(launch).name + " waits for ";
        }
        return fail(Code::kInternal, "{}{}: expected no cycle, got a deadlock", names,
                    f_.launch(met).name);
    }

    // Enqueued in list order, every event is recorded before somebody waits for it; a lane begins
    // as a fork of another; PDL follows a launch directly.
    Status check_lanes() const {
        std::array<bool, kLanes> begun{};
        for (std::size_t i = 0; i < plan_.launches.size(); ++i) {
            const Launch& launch = plan_.launches[i];
            for (std::int32_t event : launch.waits) {
                const std::int32_t from = recorder_[static_cast<std::size_t>(event)];
                if (from > static_cast<std::int32_t>(i))
                    return fail(Code::kInternal,
                                "{} waits for event {}: expected it recorded earlier in the list, "
                                "got {}, enqueued after the wait",
                                launch.name, event, f_.launch(from).name);
            }
            bool& lane = begun[static_cast<std::size_t>(launch.lane)];
            if (!lane && launch.lane != Lane::kMain && launch.waits.empty())
                return fail(Code::kInternal,
                            "{} begins lane {}: expected it to wait for an event of another lane, "
                            "got none",
                            launch.name, lane_name(launch.lane));
            if (launch.pdl != Pdl::kNone && (!lane || !launch.waits.empty()))
                return fail(Code::kInternal,
                            "{} is a PDL launch: expected it directly after another of lane {}, "
                            "got {}",
                            launch.name, lane_name(launch.lane),
                            lane ? "an event to wait for between the two" : "none before it");
            lane = true;
        }
        return {};
    }

    void derive_order() {
        std::vector<HappensBefore::Pair> pairs;
        for (std::size_t i = 0; i < predecessors_.size(); ++i)
            if (plan_.launches[i].pdl != Pdl::kNever)
                for (std::int32_t first : predecessors_[i])
                    pairs.emplace_back(first, static_cast<std::int32_t>(i));
        f_.order.emplace(static_cast<std::int32_t>(plan_.launches.size()), pairs);
    }

    Status check_stage_order() const {
        for (std::size_t n = 0; n < step_.nodes.size(); ++n)
            for (std::size_t i = 1; i < f_.launches[n].size(); ++i)
                if (!f_.before(f_.launches[n][i - 1], f_.launches[n][i]))
                    return fail(Code::kInternal, "{}: expected it ordered after {}, got {}",
                                f_.launch(f_.launches[n][i]).name,
                                f_.launch(f_.launches[n][i - 1]).name,
                                f_.relation(f_.launches[n][i - 1], f_.launches[n][i]));
        return {};
    }

    // Two tensors of a step may be one memory: a layer's state, named twice.
    std::vector<TensorId> storages() const {
        std::vector<TensorId> storage(step_.tensors.size());
        std::map<std::pair<std::int32_t, StateKind>, TensorId> states;
        for (std::size_t t = 0; t < storage.size(); ++t) {
            const auto id = static_cast<TensorId>(t);
            const Tensor& tensor = step_.tensors[t];
            storage[t] = tensor.role == Role::kState
                             ? states.try_emplace({tensor.layer, tensor.state}, id).first->second
                             : id;
        }
        return storage;
    }

    // Every pair of uses of one storage that must not change places: read after write, write after
    // read, write after write. The pairs between neighbours in the step imply the others.
    Status check_data() {
        struct History {
            std::int32_t writer = -1;
            std::vector<std::int32_t> readers;
        };
        const auto storage = storages();
        std::vector<History> history(step_.tensors.size());
        for (std::size_t n = 0; n < step_.nodes.size(); ++n) {
            if (step_.nodes[n].alias)
                continue;
            const auto node = static_cast<std::int32_t>(n);
            for (const Use& use : step_.nodes[n].uses) {
                const TensorId id = storage[static_cast<std::size_t>(use.tensor)];
                History& h = history[static_cast<std::size_t>(id)];
                if (use.access != Access::kWrite && h.writer < 0)
                    LR_TRY(check_exists(node, use.tensor));
                if (use.access != Access::kWrite)
                    LR_TRY(require({h.writer, "writes"}, {node, "reads"}, use.tensor));
                else
                    LR_TRY(require({h.writer, "writes"}, {node, "overwrites"}, use.tensor));
                if (use.access == Access::kRead) {
                    h.readers.push_back(node);
                    continue;
                }
                for (std::int32_t reader : h.readers)
                    LR_TRY(require({reader, "reads"}, {node, "overwrites"}, use.tensor));
                h = {node, {}};
            }
        }
        for (std::size_t t = 0; t < history.size(); ++t)
            if (step_.tensors[t].role == Role::kOutput && history[t].writer < 0)
                return fail(Code::kInternal,
                            "the host reads {}: expected a launch to write it, got none",
                            step_.tensors[t].name);
        return {};
    }

    // A tensor that is there before the step: not an activation, nor an output.
    Status check_exists(std::int32_t node, TensorId id) const {
        const Tensor& tensor = step_.tensors[static_cast<std::size_t>(id)];
        if (tensor.role != Role::kActivation && tensor.role != Role::kOutput)
            return {};
        return fail(Code::kInternal, "{} reads {}: expected a launch to write it first, got none",
                    f_.names(f_.launches[static_cast<std::size_t>(node)]), tensor.name);
    }

    struct Act {
        std::int32_t node;
        const char* verb;
    };
    Status require(const Act& first, const Act& second, TensorId tensor) const {
        if (first.node < 0 || first.node == second.node)
            return {};
        for (std::int32_t a : f_.launches[static_cast<std::size_t>(first.node)])
            for (std::int32_t b : f_.launches[static_cast<std::size_t>(second.node)])
                if (a != b && !f_.before(a, b))
                    return fail(Code::kInternal,
                                "{} {} {}, which {} {}: expected {} ordered before {}, got {}",
                                f_.launch(b).name, second.verb,
                                step_.tensors[static_cast<std::size_t>(tensor)].name,
                                f_.launch(a).name, first.verb, f_.launch(a).name, f_.launch(b).name,
                                f_.relation(a, b));
        return {};
    }

    Status check_swallowed() const {
        const auto swallower = f_.swallower();
        for (const Launch& launch : plan_.launches)
            for (TensorId id : launch.swallowed) {
                const Tensor& tensor = step_.tensors[static_cast<std::size_t>(id)];
                if (tensor.role != Role::kActivation)
                    return fail(Code::kInternal,
                                "{} swallows {}: expected it stored for {}, got it in no memory",
                                launch.name, tensor.name,
                                tensor.role == Role::kOutput ? "the host" : "later steps");
            }
        for (std::size_t n = 0; n < step_.nodes.size(); ++n)
            for (const Use& use : step_.nodes[n].uses)
                for (std::int32_t launch : f_.launches[n]) {
                    const std::int32_t by = swallower[static_cast<std::size_t>(use.tensor)];
                    if (by >= 0 && by != launch)
                        return fail(Code::kInternal,
                                    "{} {} {}, which {} swallows: expected it stored, got it in no "
                                    "memory",
                                    f_.launch(launch).name,
                                    use.access == Access::kRead ? "reads" : "writes",
                                    step_.tensors[static_cast<std::size_t>(use.tensor)].name,
                                    f_.launch(by).name);
                }
        return {};
    }

    // The step ends with the last launch of the main lane.
    Status check_end() const {
        std::int32_t end = static_cast<std::int32_t>(plan_.launches.size()) - 1;
        while (end >= 0 && f_.launch(end).lane != Lane::kMain)
            --end;
        if (end < 0)
            return fail(Code::kInternal, "lane main: expected a launch, got none");
        for (std::int32_t i = 0; i < static_cast<std::int32_t>(plan_.launches.size()); ++i)
            if (i != end && !f_.before(i, end))
                return fail(Code::kInternal,
                            "{} of lane {}: expected it ordered before {}, which ends the step, "
                            "got {}",
                            f_.launch(i).name, lane_name(f_.launch(i).lane), f_.launch(end).name,
                            f_.relation(i, end));
        return {};
    }

    PlanFacts& f_;
    const Step& step_;
    const Plan& plan_;
    std::vector<std::int32_t> recorder_; // of each event
    std::vector<std::vector<std::int32_t>> predecessors_;
};

std::string title(const Plan& plan) {
    if (plan.rewrites.empty())
        return "reference plan";
    return fmt::format("plan {}", fmt::join(plan.rewrites, ", "));
}

} // namespace

Status verify_plan(const Step& step, const Plan& plan, const MemoryPlan* memory) {
    PlanFacts facts(step, plan);
    Status status = PlanVerifier(facts).verify();
    if (status.ok() && memory)
        status = verify_memory(facts, *memory);
    return status.with_context(title(plan));
}

} // namespace lr::graph
