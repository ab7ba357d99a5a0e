// SPDX-License-Identifier: Apache-2.0
#include "report/graph_text.h"

#include <algorithm>
#include <set>

namespace lr::report {
namespace {

bool shows_links(const GraphView& view) {
    return view.total.work.link_bytes > 0;
}

std::string bytes_text(std::int64_t bytes) {
    return bytes == 0 ? "-" : group_digits(bytes);
}

std::string tensors_text(const GraphView& view, const GraphBox& box, bool outputs) {
    std::string text;
    for (std::int32_t id : box.nodes)
        for (const GraphTensor& tensor :
             node_tensors(view.step, view.step.nodes[static_cast<std::size_t>(id)])) {
            const bool out = tensor.use == "out";
            if (tensor.use != "weight" && tensor.bytes > 4 &&
                (out == outputs || tensor.use == "state"))
                text += fmt::format("{}{}", text.empty() ? "" : "; ", describe(tensor));
        }
    return text.empty() ? "-" : text;
}

std::vector<std::string> cells_of(const graph::Work& work, double floor_us, std::string bound,
                                  bool links) {
    std::vector<std::string> cells = {bytes_text(work.weight_bytes), bytes_text(work.read_bytes),
                                      bytes_text(work.write_bytes)};
    if (links)
        cells.push_back(bytes_text(work.link_bytes));
    cells.push_back(bytes_text(work.total_flops()));
    cells.push_back(microseconds_text(floor_us));
    cells.push_back(std::move(bound));
    return cells;
}

void add_row(Table& table, std::vector<std::string> first, std::vector<std::string> cells,
             std::vector<std::string> last = {}) {
    first.insert(first.end(), cells.begin(), cells.end());
    first.insert(first.end(), last.begin(), last.end());
    first.resize(table.columns.size());
    table.add(std::move(first));
}

std::vector<Column> work_columns(bool links) {
    std::vector<Column> columns = {{"weight bytes"}, {"read"}, {"written"}};
    if (links)
        columns.push_back({"from ranks"});
    for (const char* title : {"FLOPs", "floor us"})
        columns.push_back({title});
    columns.push_back({"bound by", Align::kLeft});
    return columns;
}

// --- Mermaid ---

std::string mermaid_text(std::string_view text) {
    std::string safe;
    for (char c : text)
        safe += c == '"' ? std::string("#quot;") : std::string(1, c);
    return safe;
}

class Mermaid {
  public:
    explicit Mermaid(const GraphView& view) : view_(view) {}

    std::string write() {
        text_ = fmt::format("%% {}: {}\nflowchart LR\n", view_.model, describe_shape(view_));
        for (std::size_t s = 0; s < view_.sections.size(); ++s)
            section(view_.sections[s], s);
        text_ += "    classDef comm fill:#bdd7ee,stroke:#4472c4,color:#000\n"
                 "    classDef alias fill:#fff,stroke:#888,color:#555,stroke-dasharray:4\n"
                 "    classDef state fill:#fff2cc,stroke:#bf9000,color:#000\n";
        class_line("comm", comm_);
        class_line("alias", alias_);
        class_line("state", state_);
        return std::move(text_);
    }

  private:
    // "K8" of the only section, "S1K8" of the second.
    std::string box_id(std::size_t section, const GraphBox& box) const {
        std::string id = view_.sections.size() > 1 ? fmt::format("S{}K", section) : "K";
        for (char c : box.number)
            id += c == '+' || c == '.' || c == ' ' ? '_' : c;
        return id;
    }

    void section(const GraphSection& section, std::size_t index) {
        text_ += fmt::format("  subgraph {}[\"{} ({})\"]\n", section.id, section.title,
                             section.count > 1
                                 ? fmt::format("{}, one of {}", section.label, section.count)
                                 : section.label);
        for (const GraphBox& box : section.boxes) {
            const std::string id = box_id(index, box);
            text_ += fmt::format("    {}[\"{}<br/>{}\"]\n", id, box.number, mermaid_text(box.name));
            if (box.communicates)
                comm_.push_back(id);
            if (box.alias())
                alias_.push_back(id);
            states(box, id);
        }
        for (const GraphArrow& arrow : section.arrows)
            this->arrow(section, index, arrow);
        text_ += "  end\n";
    }

    // States stand beside who updates them, as in the traced charts.
    void states(const GraphBox& box, const std::string& id) {
        for (std::int32_t node : box.nodes)
            for (const GraphTensor& tensor :
                 node_tensors(view_.step, view_.step.nodes[static_cast<std::size_t>(node)])) {
                if (tensor.use != "state" || !seen_.insert(id + tensor.tensor).second)
                    continue;
                const std::string name = tensor.tensor.substr(tensor.tensor.rfind('.') + 1);
                const std::string state = fmt::format("{}_{}", id, name);
                text_ += fmt::format("    {0}[(\"{1}\")] --> {2}\n    {2} --> "
                                     "{0}_next[(\"updated {1}\")]\n",
                                     state, name, id);
                state_.push_back(state);
                state_.push_back(state + "_next");
            }
    }

    void arrow(const GraphSection& section, std::size_t index, const GraphArrow& arrow) {
        const auto end = [&](std::int32_t box, const char* role) {
            if (box >= 0)
                return box_id(index, section.boxes[static_cast<std::size_t>(box)]);
            std::string id = fmt::format("{}{}_", role, index);
            for (char c : arrow.outside)
                id += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
            return fmt::format("{}([\"{}\"])", id, mermaid_text(arrow.outside));
        };
        std::string label = fmt::format("{}", fmt::join(arrow.tensors, ", "));
        if (arrow.added)
            label += label.empty() ? "not in the traced chart" : " (not in the traced chart)";
        text_ +=
            fmt::format("    {} {}{} {}\n", end(arrow.from, "From"), arrow.added ? "-.->" : "-->",
                        label.empty() ? "" : fmt::format("|\"{}\"|", label), end(arrow.to, "To"));
    }

    void class_line(const char* name, const std::vector<std::string>& ids) {
        if (!ids.empty())
            text_ += fmt::format("    class {} {}\n", fmt::join(ids, ","), name);
    }

    const GraphView& view_;
    std::string text_;
    std::vector<std::string> comm_, alias_, state_;
    std::set<std::string> seen_;
};

// --- JSON ---

Json tensor_json(const GraphTensor& tensor) {
    JsonArray shape;
    for (std::int64_t dim : tensor.shape)
        shape.emplace_back(dim);
    return Json::object({{"slot", Json(tensor.slot)},
                         {"use", Json(tensor.use)},
                         {"tensor", Json(tensor.tensor)},
                         {"dtype", Json(tensor.dtype)},
                         {"shape", Json(std::move(shape))},
                         {"bytes", Json(tensor.bytes)}});
}

Json node_json(const graph::Step& step, const graph::Node& node) {
    JsonArray tensors;
    for (const GraphTensor& tensor : node_tensors(step, node))
        tensors.push_back(tensor_json(tensor));
    JsonArray also;
    for (std::int32_t number : node.also)
        also.emplace_back(number);
    return Json::object({{"id", Json(node.id)},
                         {"name", Json(node.name)},
                         {"op", Json(ops::op_stem(node.args))},
                         {"also", Json(std::move(also))},
                         {"tensors", Json(std::move(tensors))}});
}

Json box_json(const GraphView& view, const GraphBox& box) {
    JsonArray nodes;
    for (std::int32_t id : box.nodes)
        nodes.push_back(node_json(view.step, view.step.nodes[static_cast<std::size_t>(id)]));
    return Json::object({{"number", Json(box.number)},
                         {"name", Json(box.name)},
                         {"lane", Json(lane_name(box.lane))},
                         {"alias", Json(box.alias())},
                         {"communicates", Json(box.communicates)},
                         {"counted", Json(box.counted)},
                         {"work", work_json(box.work)},
                         {"floor_us", Json(box.floor.us)},
                         {"bound_by", Json(bound_name(box.floor.bound))},
                         {"slack_us", Json(box.slack_us)},
                         {"on_longest_path", Json(box.on_path)},
                         {"nodes", Json(std::move(nodes))}});
}

Json arrow_json(const GraphSection& section, const GraphArrow& arrow) {
    const auto end = [&](std::int32_t box) {
        return box >= 0 ? Json(section.boxes[static_cast<std::size_t>(box)].number)
                        : Json(arrow.outside);
    };
    JsonArray tensors;
    for (const std::string& tensor : arrow.tensors)
        tensors.emplace_back(tensor);
    return Json::object({{"from", end(arrow.from)},
                         {"to", end(arrow.to)},
                         {"inside", Json(arrow.from >= 0 && arrow.to >= 0)},
                         {"tensors", Json(std::move(tensors))},
                         {"in_traced_chart", Json(!arrow.added)}});
}

Json section_json(const GraphView& view, const GraphSection& section) {
    JsonArray launches, arrows;
    for (const GraphBox& box : section.boxes)
        launches.push_back(box_json(view, box));
    for (const GraphArrow& arrow : section.arrows)
        arrows.push_back(arrow_json(section, arrow));
    return Json::object({{"path", Json(section.id)},
                         {"layer", Json(section.label)},
                         {"layers", Json(section.count)},
                         {"launch_count", Json(section.launches)},
                         {"work", work_json(section.work)},
                         {"floor_us", Json(section.floor_us)},
                         {"memory_us", Json(section.memory_us)},
                         {"longest_path_us", Json(section.path_us)},
                         {"launches", Json(std::move(launches))},
                         {"edges", Json(std::move(arrows))}});
}

} // namespace

std::string microseconds_text(double us) {
    if (us == 0)
        return "-";
    return us >= 100     ? fmt::format("{:.1f}", us)
           : us >= 1     ? fmt::format("{:.2f}", us)
           : us >= 0.001 ? fmt::format("{:.3f}", us)
                         : "<0.001";
}

std::string lane_name(graph::Lane lane) {
    return lane == graph::Lane::kMain ? "main" : "shared";
}

Table section_table(const GraphSection& section, const GraphView& view, bool shapes) {
    const bool links = shows_links(view);
    Table table(
        fmt::format("{}, {}{}", section.title, section.label,
                    section.count > 1 ? fmt::format(", one of {} layers", section.count) : ""),
        {{"#", Align::kLeft}, {"kernel", Align::kLeft}, {"lane", Align::kLeft}});
    for (Column& column : work_columns(links))
        table.columns.push_back(std::move(column));
    if (shapes) {
        table.columns.push_back({"in", Align::kLeft});
        table.columns.push_back({"out", Align::kLeft});
    }
    for (const GraphBox& box : section.boxes) {
        std::string bound = box.alias()    ? "alias: no launch"
                            : !box.counted ? "counted in the layer before"
                                           : std::string(bound_name(box.floor.bound));
        std::vector<std::string> last;
        if (shapes)
            last = {tensors_text(view, box, false), tensors_text(view, box, true)};
        add_row(table, {box.number, box.name, lane_name(box.lane)},
                cells_of(box.work, box.floor.us, std::move(bound), links), std::move(last));
    }
    add_row(table, {"", fmt::format("sum of {} launches", section.launches), ""},
            cells_of(section.work, section.floor_us, "", links));
    return table;
}

Table totals_table(const GraphView& view) {
    const bool links = shows_links(view);
    Table table("Step", {{"part", Align::kLeft}, {"launches"}});
    for (Column& column : work_columns(links))
        table.columns.push_back(std::move(column));
    table.columns.back().title = "longest path us";
    table.columns.back().align = Align::kRight;
    for (const GraphSection& section : view.sections)
        add_row(
            table,
            {section.count > 1 ? fmt::format("{} (of {})", section.title, section.count)
                               : section.title,
             group_digits(section.launches)},
            cells_of(section.work, section.floor_us, microseconds_text(section.path_us), links));
    add_row(table, {"whole step", group_digits(view.total.launches)},
            cells_of(view.total.work, view.total.floor_us, "", links));
    return table;
}

Table machine_table(const graph::Machine& machine) {
    Table table(
        fmt::format("Machine {}: {}", machine.name, machine.device),
        {{"figure", Align::kLeft}, {"value"}, {"unit", Align::kLeft}, {"source", Align::kLeft}});
    for (const graph::FigureField& field : graph::figure_fields()) {
        const graph::Figure& figure = machine.*field.figure;
        table.add({std::string(field.what), fmt::format("{:g}", figure.value),
                   std::string(field.unit), figure.source});
    }
    return table;
}

std::string graph_text(const GraphView& view, bool shapes) {
    std::string text = fmt::format("{}: {}\n\n", view.model, describe_shape(view));
    for (const GraphSection& section : view.sections)
        text += table_text(section_table(section, view, shapes)) + "\n";
    text += table_text(totals_table(view)) + "\n";
    text += fmt::format(
        "A launch boundary costs about {:g} us here: {} launches, {} us beside the "
        "floor.\n\n",
        view.machine.launch.value, group_digits(view.total.launches),
        microseconds_text(static_cast<double>(view.total.launches) * view.machine.launch.value));
    return text + table_text(machine_table(view.machine));
}

std::string graph_mermaid(const GraphView& view) {
    return Mermaid(view).write();
}

Json work_json(const graph::Work& work) {
    std::vector<JsonMember> flops;
    for (std::size_t u = 0; u < graph::kUnits; ++u)
        flops.push_back(
            {std::string(graph::unit_name(static_cast<graph::Unit>(u))), Json(work.flops[u])});
    return Json::object({{"weight_bytes", Json(work.weight_bytes)},
                         {"state_bytes", Json(work.state_bytes)},
                         {"read_bytes", Json(work.read_bytes)},
                         {"write_bytes", Json(work.write_bytes)},
                         {"link_bytes", Json(work.link_bytes)},
                         {"total_flops", Json(work.total_flops())},
                         {"flops", Json::object(std::move(flops))}});
}

Json machine_json(const graph::Machine& machine) {
    std::vector<JsonMember> members = {{"name", Json(machine.name)},
                                       {"device", Json(machine.device)}};
    for (const graph::FigureField& field : graph::figure_fields()) {
        const graph::Figure& figure = machine.*field.figure;
        members.push_back(
            {std::string(field.key),
             Json::object({{"value", Json(figure.value)}, {"source", Json(figure.source)}})});
    }
    return Json::object(std::move(members));
}

Json graph_json(const GraphView& view) {
    JsonArray sections, rewrites;
    for (const GraphSection& section : view.sections)
        sections.push_back(section_json(view, section));
    for (const std::string& rewrite : view.plan.rewrites)
        rewrites.emplace_back(rewrite);
    const graph::StepShape& shape = view.step.shape;
    return Json::object(
        {{"model", Json(view.model)},
         {"phase", Json(shape.phase == graph::Phase::kDecode ? "decode" : "prefill")},
         {"rows", Json(shape.rows)},
         {"sequences", Json(shape.sequences)},
         {"context", Json(shape.context)},
         {"tp", Json(view.step.shard.tp)},
         {"ep", Json(view.step.shard.ep)},
         {"plan", Json(std::move(rewrites))},
         {"machine", machine_json(view.machine)},
         {"sections", Json(std::move(sections))},
         {"step", Json::object({{"launch_count", Json(view.total.launches)},
                                {"work", work_json(view.total.work)},
                                {"floor_us", Json(view.total.floor_us)},
                                {"memory_us", Json(view.total.memory_us)}})}});
}

} // namespace lr::report
