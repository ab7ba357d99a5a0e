// SPDX-License-Identifier: Apache-2.0
#include "report/graph_view.h"

#include "core/check.h"
#include "graph/critical_path.h"

#include <algorithm>
#include <map>
#include <set>

namespace lr::report {
namespace {

using graph::Node;
using graph::Phase;
using graph::Step;
using model::LayerKind;

struct NamedPath {
    std::string_view name;
    PathChoice choice;
};
constexpr std::array kPaths = {
    NamedPath{"decode", {Phase::kDecode, true, true, true}},
    NamedPath{"decode-gdn", {Phase::kDecode, true, false, false}},
    NamedPath{"decode-attention", {Phase::kDecode, false, true, false}},
    NamedPath{"prefill", {Phase::kPrefill, true, true, true}},
    NamedPath{"prefill-gdn", {Phase::kPrefill, true, false, false}},
    NamedPath{"prefill-attention", {Phase::kPrefill, false, true, false}},
};

const Node& node_at(const Step& step, std::int32_t id) {
    return step.nodes[static_cast<std::size_t>(id)];
}

// "L4" of "L4.8": the scope that a node was built in.
std::string_view scope_of(const Node& node) {
    return std::string_view(node.id).substr(0, node.id.find('.'));
}

// A layer that shows its kind: not the first of the model where there is another one, since that
// has no residual and nothing to add up. -1: none.
std::int32_t typical_layer(const Step& step, LayerKind kind) {
    std::int32_t found = -1;
    for (std::size_t i = 0; i < step.layers.size() && found <= 0; ++i)
        if (step.layers[i] == kind)
            found = static_cast<std::int32_t>(i);
    return found;
}

std::string_view stage_of(const graph::Launch& launch) {
    if (launch.stage < 0)
        return {};
    return std::string_view(launch.name).substr(launch.name.rfind(' ') + 1);
}

// "8+9"; nodes of the layers around the one shown are "prev.23" and "next.1".
std::string number_text(const Step& step, const std::vector<std::int32_t>& nodes,
                        std::string_view scope, std::string_view stage) {
    std::string text;
    bool reached = false;
    for (std::int32_t id : nodes) {
        const Node& node = node_at(step, id);
        const bool inside = scope_of(node) == scope;
        text += fmt::format("{}{}{}", text.empty() ? "" : "+",
                            inside ? "" : (reached ? "next." : "prev."), node.number);
        reached = reached || inside;
    }
    return stage.empty() ? text : fmt::format("{} {}", text, stage);
}

std::string tensor_label(const Step& step, std::string_view scope, graph::TensorId id) {
    const std::string& name = step.tensors[static_cast<std::size_t>(id)].name;
    const std::string prefix = fmt::format("{}.", scope);
    return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

class SectionBuilder {
  public:
    SectionBuilder(const Step& step, const graph::Plan& plan, const graph::Machine& machine)
        : step_(step), plan_(plan), machine_(machine) {}

    GraphSection build(std::string id, std::string title, std::string label, std::int64_t count) {
        section_ = {.id = std::move(id),
                    .title = std::move(title),
                    .label = std::move(label),
                    .count = count};
        box_of_.assign(step_.nodes.size(), -1);
        for (std::size_t i = 0; i < plan_.launches.size(); ++i)
            add_launch(i);
        for (std::size_t n = 0; n < step_.nodes.size(); ++n)
            if (step_.nodes[n].alias && in_scope(step_.nodes[n]))
                add_alias(static_cast<std::int32_t>(n));
        std::stable_sort(
            section_.boxes.begin(), section_.boxes.end(),
            [](const GraphBox& a, const GraphBox& b) { return a.nodes.front() < b.nodes.front(); });
        index();
        add_arrows();
        add_sums();
        return std::move(section_);
    }

  private:
    bool in_scope(const Node& node) const { return scope_of(node) == section_.label; }

    void add_launch(std::size_t index) {
        const graph::Launch& launch = plan_.launches[index];
        if (std::none_of(launch.nodes.begin(), launch.nodes.end(),
                         [&](std::int32_t id) { return in_scope(node_at(step_, id)); }))
            return;
        GraphBox box{.launch = static_cast<std::int32_t>(index),
                     .nodes = launch.nodes,
                     .number = number_text(step_, launch.nodes, section_.label, stage_of(launch)),
                     .name = {},
                     .lane = launch.lane,
                     .counted = in_scope(node_at(step_, launch.nodes.front())),
                     .work = graph::launch_work(step_, plan_, index)};
        for (std::int32_t id : launch.nodes) {
            const Node& node = node_at(step_, id);
            box.name += fmt::format("{}{}", box.name.empty() ? "" : " + ", node.name);
            box.communicates = box.communicates || graph::communicates(node);
        }
        box.floor = graph::floor_of(machine_, box.work);
        section_.boxes.push_back(std::move(box));
    }

    void add_alias(std::int32_t id) {
        const Node& node = node_at(step_, id);
        section_.boxes.push_back({.nodes = {id},
                                  .number = std::to_string(node.number),
                                  .name = node.name,
                                  .lane = node.lane});
    }

    // A node in stages belongs to the box of its last one for who reads it, and to the first for
    // what it reads; stages are chained.
    void index() {
        first_box_.assign(step_.nodes.size(), -1);
        for (std::size_t b = 0; b < section_.boxes.size(); ++b)
            for (std::int32_t id : section_.boxes[b].nodes) {
                const auto n = static_cast<std::size_t>(id);
                const auto box = static_cast<std::int32_t>(b);
                if (box_of_[n] >= 0)
                    connect(box_of_[n], box, "", {});
                if (first_box_[n] < 0)
                    first_box_[n] = box;
                box_of_[n] = box;
            }
    }

    void connect(std::int32_t from, std::int32_t to, std::string outside, std::string tensor,
                 bool added = false) {
        GraphArrow& arrow = arrows_[{from, to, outside}];
        arrow.from = from;
        arrow.to = to;
        arrow.outside = std::move(outside);
        arrow.added = arrow.added || added;
        if (!tensor.empty() &&
            std::find(arrow.tensors.begin(), arrow.tensors.end(), tensor) == arrow.tensors.end())
            arrow.tensors.push_back(std::move(tensor));
    }

    void add_arrows() {
        for (const graph::Edge& edge : step_.edges) {
            const std::int32_t from = box_of_[static_cast<std::size_t>(edge.from)];
            const std::int32_t to = first_box_[static_cast<std::size_t>(edge.to)];
            if ((from < 0 && to < 0) || from == to)
                continue;
            std::string tensor = tensor_label(step_, section_.label, edge.tensor);
            std::string outside;
            if (from < 0)
                outside = node_at(step_, edge.from).label();
            else if (to < 0)
                outside = node_at(step_, edge.to).label();
            connect(from, to, std::move(outside), std::move(tensor), is_added(edge));
        }
        for (auto& [key, arrow] : arrows_)
            section_.arrows.push_back(std::move(arrow));
        arrows_.clear();
    }

    // The one data edge that the traced graph's charts leave out: chunk states and new values.
    bool is_added(const graph::Edge& edge) const {
        return section_.id == "prefill-gdn" && node_at(step_, edge.from).number == 15 &&
               node_at(step_, edge.to).number == 17;
    }

    void add_sums() {
        std::vector<graph::TimedNode> times;
        for (const GraphBox& box : section_.boxes) {
            times.push_back({.duration_us = box.counted ? box.floor.us : 0});
            if (!box.counted)
                continue;
            section_.work += box.work;
            section_.floor_us += box.floor.us;
            section_.memory_us += box.floor.memory_us;
            section_.launches += box.alias() ? 0 : 1;
        }
        std::vector<graph::Dependency> edges;
        for (const GraphArrow& arrow : section_.arrows)
            if (arrow.from >= 0 && arrow.to >= 0)
                edges.emplace_back(arrow.from, arrow.to);
        const auto path = graph::critical_path(times, edges);
        LR_CHECK(path.has_value()); // a step and a proved plan have no cycle
        section_.path_us = path->length_us;
        for (std::size_t b = 0; b < section_.boxes.size(); ++b)
            section_.boxes[b].slack_us = path->slack_us[b];
        for (std::int32_t b : path->nodes)
            section_.boxes[static_cast<std::size_t>(b)].on_path = true;
    }

    const Step& step_;
    const graph::Plan& plan_;
    const graph::Machine& machine_;
    GraphSection section_;
    std::vector<std::int32_t> box_of_, first_box_; // of each node
    std::map<std::tuple<std::int32_t, std::int32_t, std::string>, GraphArrow> arrows_;
};

GraphTotal total_of(const Step& step, const graph::Plan& plan, const graph::Machine& machine) {
    GraphTotal total{.launches = static_cast<std::int64_t>(plan.launches.size())};
    for (std::size_t i = 0; i < plan.launches.size(); ++i) {
        const graph::Work work = graph::launch_work(step, plan, i);
        const graph::Floor floor = graph::floor_of(machine, work);
        total.work += work;
        total.floor_us += floor.us;
        total.memory_us += floor.memory_us;
    }
    return total;
}

struct TensorVisitor {
    const Step& step;
    std::vector<GraphTensor> tensors;

    void add(const char* slot, const char* use, ConstView view) {
        const graph::TensorId id = graph::to_symbol(view.data).tensor;
        if (id < 0)
            return; // an optional that is not there
        tensors.push_back({.slot = slot,
                           .use = use,
                           .tensor = step.tensors[static_cast<std::size_t>(id)].name,
                           .dtype = std::string(dtype_name(view.dtype)),
                           .shape = view.shape,
                           .bytes = view.bytes()});
    }
    void in(const char* slot, ConstView view) {
        const graph::TensorId id = graph::to_symbol(view.data).tensor;
        const bool weight =
            id >= 0 && step.tensors[static_cast<std::size_t>(id)].role == graph::Role::kWeight;
        add(slot, weight ? "weight" : "in", view);
    }
    void weight(const char* slot, const ops::Weight& w) {
        if (w.id < 0)
            return;
        const bool plain = w.format == ops::WeightFormat::kPlain;
        tensors.push_back({.slot = slot,
                           .use = "weight",
                           .tensor = step.tensors[static_cast<std::size_t>(w.id)].name,
                           .dtype = std::string(plain ? dtype_name(w.dtype)
                                                      : numerics::weight_format_name(w.format)),
                           .shape = w.shape,
                           .bytes = ops::weight_bytes(w)});
    }
    void state(const char* slot, View view) { add(slot, "state", view); }
    void out(const char* slot, View view) { add(slot, "out", view); }
};

} // namespace

std::vector<std::string_view> path_names() {
    std::vector<std::string_view> names;
    for (const NamedPath& path : kPaths)
        names.push_back(path.name);
    return names;
}

Result<PathChoice> path_choice(std::string_view name) {
    for (const NamedPath& path : kPaths)
        if (path.name == name)
            return path.choice;
    return fail(Code::kInvalidArgument, "path: expected one of {}, got \"{}\"",
                fmt::join(path_names(), ", "), name);
}

Result<GraphView> graph_view(const Step& step, const graph::Plan& plan,
                             const graph::Machine& machine, const PathChoice& choice,
                             std::string model) {
    GraphView view{.step = step,
                   .plan = plan,
                   .machine = machine,
                   .model = std::move(model),
                   .sections = {},
                   .total = total_of(step, plan, machine)};
    SectionBuilder builder(step, plan, machine);
    const bool decode = step.shape.phase == Phase::kDecode;
    const char* phase = decode ? "decode" : "prefill";
    const char* title = decode ? "Decode" : "Prefill";
    if (choice.ends)
        view.sections.push_back(builder.build("prologue", "Prologue", "pro", 1));
    for (const auto& [kind, wanted, id, name] :
         {std::tuple{LayerKind::kGdn, choice.gdn, "gdn", "GDN"},
          std::tuple{LayerKind::kAttention, choice.attention, "attention", "FullAttn"}}) {
        const std::int32_t layer = typical_layer(step, kind);
        if (!wanted || (layer < 0 && choice.ends))
            continue;
        if (layer < 0)
            return fail(Code::kInvalidArgument, "path {}-{}: {} has no layer of this kind", phase,
                        id, view.model);
        view.sections.push_back(builder.build(
            fmt::format("{}-{}", phase, id), fmt::format("{}-{}", title, name),
            fmt::format("L{}", layer), std::count(step.layers.begin(), step.layers.end(), kind)));
    }
    if (choice.ends)
        view.sections.push_back(builder.build("epilogue", "Epilogue", "epi", 1));
    return view;
}

std::string describe_shape(const GraphView& view) {
    const graph::StepShape& shape = view.step.shape;
    std::string text = shape.phase == Phase::kDecode
                           ? fmt::format("decode, batch {}", shape.rows)
                           : fmt::format("prefill, {} tokens of {} sequence{}", shape.rows,
                                         shape.sequences, shape.sequences == 1 ? "" : "s");
    text += fmt::format(", context {}, tp {}", shape.context, view.step.shard.tp);
    if (view.step.shard.ep > 1)
        text += fmt::format(", ep {}", view.step.shard.ep);
    return text +
           fmt::format(", plan {}", view.plan.rewrites.empty()
                                        ? "reference"
                                        : fmt::format("{}", fmt::join(view.plan.rewrites, ", ")));
}

std::vector<GraphTensor> node_tensors(const Step& step, const Node& node) {
    TensorVisitor visitor{step, {}};
    ops::AnyArgs args = node.args;
    std::visit([&](auto& typed) { typed.visit(visitor); }, args);
    return std::move(visitor.tensors);
}

std::string describe(const GraphTensor& tensor) {
    return fmt::format("{} {} {}", tensor.tensor, tensor.shape.to_string(), tensor.dtype);
}

} // namespace lr::report
