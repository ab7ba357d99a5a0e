// SPDX-License-Identifier: Apache-2.0
#include "report/graph_page.h"

#include "ops/contract.h"
#include "report/graph_layout.h"
#include "report/graph_svg.h"
#include "report/graph_text.h"
#include "report/html_page.h"

#include <set>

namespace lr::report {
namespace {

constexpr std::string_view kStyle = R"css(
.legend { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; margin: .75rem 0; padding: 0; list-style: none; }
.legend li { display: flex; align-items: center; gap: .4rem; }
.mark { display: inline-block; width: 1.6em; height: 1em; border: 1px solid var(--edge); background: var(--page); }
.mark.path { border: 2px solid var(--text); }
.mark.comm { border: 3px solid var(--comm); }
.mark.added { height: 0; border: 0; border-top: 2px dashed var(--zero); }
.mark.bar { height: .35em; background: var(--live); }
.mark.arithmetic { background: var(--zero); }
.mark.link { background: var(--comm); }
figure { margin: .75rem 0; }
th, td { padding-left: .5rem; padding-right: .5rem; }
figcaption { font-weight: 600; margin: .25rem 0; }
details.node { border-bottom: 1px solid var(--line); padding: .4rem 0; scroll-margin-top: 1rem; }
details.node > summary { cursor: pointer; }
.contract dt { font-weight: 600; }
.contract dd { margin: 0 0 .4rem 0; white-space: pre-wrap; overflow-wrap: anywhere; }
@media (min-width: 40rem) {
  .contract { display: grid; grid-template-columns: 6rem 1fr; gap: .1rem .75rem; }
}
dialog { background: var(--page); color: var(--text); border: 1px solid var(--edge); border-radius: .5rem;
  width: min(60rem, 94vw); max-height: 88vh; padding: 0; overflow: auto; }
dialog::backdrop { background: rgb(0 0 0 / .45); }
dialog .head { position: sticky; top: 0; z-index: 1; display: flex; flex-wrap: wrap; gap: .5rem; align-items: center; justify-content: space-between;
  background: var(--panel); border-bottom: 1px solid var(--line); padding: .5rem 1rem; }
dialog .head h3 { margin: 0; overflow-wrap: anywhere; }
dialog .body-of { padding: .25rem 1rem 1rem; }
dialog button { font: inherit; color: var(--text); background: var(--page); border: 1px solid var(--edge);
  border-radius: .375rem; padding: .35rem .75rem; min-height: 2.25rem; }
@media print {
  .ops-of-all, .nodes { break-before: page; }
}
)css";

// Boxes open a dialog with what their details hold; arrow keys go from one to the next.
constexpr std::string_view kScript = R"js(
const dialog = document.getElementById('box');
const title = dialog.querySelector('h3'), body = dialog.querySelector('.body-of');
const nodes = [...document.querySelectorAll('details.node')];
let shown = -1, opener = null;
function show(index) {
  const node = nodes[index];
  if (!node) return;
  shown = index;
  title.textContent = node.querySelector('summary').textContent;
  body.replaceChildren(...[...node.children].slice(1).map(child => child.cloneNode(true)));
  for (const link of node.querySelectorAll('a.op')) {
    const contract = document.querySelector(link.getAttribute('href'));
    if (contract) body.append(...[...contract.children].map(child => child.cloneNode(true)));
  }
  for (const part of body.querySelectorAll('[id]')) part.removeAttribute('id');
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
}
document.addEventListener('click', event => {
  const link = event.target.closest('.graph a');
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  opener = link;
  show(nodes.findIndex(node => '#' + node.id === link.getAttribute('href')));
});
dialog.addEventListener('keydown', event => {
  if (event.key === 'ArrowRight' && shown + 1 < nodes.length) show(shown + 1);
  if (event.key === 'ArrowLeft' && shown > 0) show(shown - 1);
});
dialog.addEventListener('close', () => { if (opener) opener.focus(); });
document.getElementById('back').onclick = () => show(Math.max(0, shown - 1));
document.getElementById('on').onclick = () => show(Math.min(nodes.length - 1, shown + 1));
document.getElementById('close').onclick = () => dialog.close();
function open_target() {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  if (target && target.tagName === 'DETAILS') target.open = true;
}
addEventListener('hashchange', open_target);
open_target();
)js";

constexpr std::string_view kLegend =
    R"(<ul class="legend note" aria-label="Legend">
<li><span class="mark path"></span>on the longest path by floors</li>
<li><span class="mark comm"></span>communicates with other ranks</li>
<li><span class="mark bar"></span>floor, by memory</li>
<li><span class="mark bar arithmetic"></span>by arithmetic</li>
<li><span class="mark bar link"></span>by the link; the longest bar is the slowest launch, and warmer boxes take longer</li>
</ul>
)";

std::string bytes_text(std::int64_t bytes) {
    return bytes == 0 ? "-" : group_digits(bytes) + " B";
}

// "12.3 us", "4.56 ms".
std::string time_text(double us) {
    return us >= 1e4 ? fmt::format("{:.2f} ms", us / 1e3) : microseconds_text(us) + " us";
}

std::string flops_text(std::int64_t flops) {
    const double value = static_cast<double>(flops);
    return value >= 1e12  ? fmt::format("{:.2f} TFLOP", value / 1e12)
           : value >= 1e9 ? fmt::format("{:.2f} GFLOP", value / 1e9)
                          : fmt::format("{:.2f} MFLOP", value / 1e6);
}

std::string big_bytes(std::int64_t bytes) {
    const double value = static_cast<double>(bytes);
    return value >= 1e9   ? fmt::format("{:.2f} GB", value / 1e9)
           : value >= 1e6 ? fmt::format("{:.2f} MB", value / 1e6)
                          : group_digits(bytes) + " B";
}

std::string section_facts(const GraphSection& section, const GraphView& view) {
    return html_facts({{"launches", group_digits(section.launches)},
                       {"moved", big_bytes(section.work.bytes())},
                       {"of it weights", big_bytes(section.work.weight_bytes)},
                       {"arithmetic", flops_text(section.work.total_flops())},
                       {fmt::format("floor on {}", view.machine.name), time_text(section.floor_us)},
                       {"longest path", time_text(section.path_us)},
                       {"launch boundaries", time_text(static_cast<double>(section.launches) *
                                                       view.machine.launch.value)}});
}

std::string drawing(const GraphSection& section, const GraphView& view) {
    const std::vector<Band> wide = lay_out(section, view.step, Flow::kWide);
    const std::vector<Band> tall = lay_out(section, view.step, Flow::kTall);
    std::string html;
    for (std::size_t b = 0; b < wide.size(); ++b)
        html += fmt::format(
            "<figure class=\"graph\">{}<div class=\"scroll\">\n{}{}</div></figure>\n",
            wide[b].title.empty() ? ""
                                  : fmt::format("<figcaption>{}: {}</figcaption>",
                                                html_escape(section.title), wide[b].title),
            band_svg(wide[b], section, Flow::kWide), band_svg(tall[b], section, Flow::kTall));
    for (const GraphArrow& arrow : section.arrows)
        if (arrow.added)
            html += fmt::format(
                "<p class=\"note\"><span class=\"mark added\"></span> {} to {} ({}): a dependency "
                "that the traced chart leaves out.</p>\n",
                html_escape(section.boxes[static_cast<std::size_t>(arrow.from)].number),
                html_escape(section.boxes[static_cast<std::size_t>(arrow.to)].number),
                html_escape(fmt::format("{}", fmt::join(arrow.tensors, ", "))));
    return html;
}

Table tensors_table(const GraphView& view, const graph::Node& node) {
    Table table(fmt::format("Tensors of {}", node.label()), {{"argument", Align::kLeft},
                                                             {"use", Align::kLeft},
                                                             {"tensor", Align::kLeft},
                                                             {"shape", Align::kLeft},
                                                             {"type", Align::kLeft},
                                                             {"bytes"}});
    for (const GraphTensor& tensor : node_tensors(view.step, node))
        table.add({tensor.slot, tensor.use, tensor.tensor, tensor.shape.to_string(), tensor.dtype,
                   group_digits(tensor.bytes)});
    return table;
}

std::string rewrites_text(const GraphView& view, const GraphBox& box) {
    if (box.nodes.size() < 2)
        return "";
    std::string html;
    for (const std::string& name : view.plan.rewrites)
        if (const auto rewrite = graph::find_rewrite(name))
            for (const auto& nodes : graph::find_matches(view.step, **rewrite))
                if (nodes == box.nodes)
                    html += fmt::format("<p>Rewrite {}. Vanishes: {}. Keeps: {}. To respect: {}."
                                        "</p>\n",
                                        html_escape(name), html_escape((*rewrite)->vanishes),
                                        html_escape((*rewrite)->keeps),
                                        html_escape((*rewrite)->constraint));
    return html;
}

std::string box_details(const GraphView& view, const GraphSection& section, std::int32_t index) {
    const GraphBox& box = section.boxes[static_cast<std::size_t>(index)];
    std::string html =
        fmt::format("<details class=\"node\" id=\"{}\"><summary><strong>{}</strong> {}</summary>\n",
                    box_anchor(section, index), html_escape(box.number), html_escape(box.name));
    std::vector<std::pair<std::string, std::string>> facts = {
        {"floor", box.alias() ? "alias, no launch" : microseconds_text(box.floor.us) + " us"},
        {"bound by", std::string(bound_name(box.floor.bound))},
        {"weights", bytes_text(box.work.weight_bytes)},
        {"read", bytes_text(box.work.read_bytes)},
        {"written", bytes_text(box.work.write_bytes)},
        {"FLOPs", group_digits(box.work.total_flops())},
        {"lane", lane_name(box.lane)},
        {"slack by floors", microseconds_text(box.slack_us) + (box.slack_us > 0 ? " us" : "")}};
    if (box.communicates)
        facts.emplace_back("from other ranks", bytes_text(box.work.link_bytes));
    html += html_facts(facts) + rewrites_text(view, box);
    for (std::int32_t id : box.nodes) {
        const graph::Node& node = view.step.nodes[static_cast<std::size_t>(id)];
        const std::string_view op = ops::op_stem(node.args);
        html += fmt::format("<h4>{} {}</h4>\n<p>Op <a class=\"op\" href=\"#op-{}\">{}</a>{}</p>\n",
                            html_escape(node.id), html_escape(node.name), op, op,
                            node.also.empty() ? ""
                                              : fmt::format("; stands for node {} too",
                                                            fmt::join(node.also, ", ")));
        html += html_table(tensors_table(view, node));
    }
    return html + "</details>\n";
}

std::string contracts(const GraphView& view) {
    std::set<std::string_view> ops;
    for (const GraphSection& section : view.sections)
        for (const GraphBox& box : section.boxes)
            for (std::int32_t id : box.nodes)
                ops.insert(ops::op_stem(view.step.nodes[static_cast<std::size_t>(id)].args));
    std::string html = "<p class=\"note\">What each op promises, as its header states it.</p>\n";
    for (std::string_view op : ops) {
        const ops::Contract contract = ops::contract(op);
        html +=
            fmt::format("<section id=\"op-{0}\"><h3>{0}</h3>\n<p>{1}</p>\n<dl class=\"contract\">"
                        "\n",
                        op, html_escape(contract.purpose));
        for (const ops::Contract::Part& part : contract.parts)
            html += fmt::format("<dt>{}</dt><dd>{}</dd>\n", html_escape(part.label),
                                html_escape(part.text));
        html += "</dl>\n";
        if (!contract.remarks.empty())
            html += fmt::format("<p class=\"note\">{}</p>\n", html_escape(contract.remarks));
        html += "</section>\n";
    }
    return html;
}

std::string body_of(const GraphView& view) {
    const GraphTotal& total = view.total;
    std::string html = html_facts(
        {{fmt::format("whole step, floor on {}", view.machine.name), time_text(total.floor_us)},
         {"launches", group_digits(total.launches)},
         {"launch boundaries",
          time_text(static_cast<double>(total.launches) * view.machine.launch.value)},
         {"moved", big_bytes(total.work.bytes())},
         {"of it weights", big_bytes(total.work.weight_bytes)},
         {"arithmetic", flops_text(total.work.total_flops())}});
    html += kLegend;
    std::string details;
    for (const GraphSection& section : view.sections) {
        std::string content = section.count > 1
                                  ? fmt::format("<p>{}, one of {} layers of this kind.</p>\n",
                                                html_escape(section.label), section.count)
                                  : "";
        content += section_facts(section, view) + drawing(section, view) +
                   html_table(section_table(section, view, false));
        html += html_section(section.id, section.title, content);
        details += fmt::format("<h3>{}</h3>\n", html_escape(section.title));
        for (std::size_t b = 0; b < section.boxes.size(); ++b)
            details += box_details(view, section, static_cast<std::int32_t>(b));
    }
    html += html_section("totals", "Totals", html_table(totals_table(view)));
    html += html_section(
        "machine", "Machine",
        "<p>A floor counts each byte and each operation once, at the best rate known; the floor of "
        "a path is the sum of its launches' floors.</p>\n" +
            html_table(machine_table(view.machine)));
    html += "<div class=\"nodes\">" + html_section("nodes", "Launches", details) + "</div>";
    html += "<div class=\"ops-of-all\">" + html_section("ops", "Op contracts", contracts(view)) +
            "</div>";
    return html + "<dialog id=\"box\" aria-labelledby=\"box-title\"><div class=\"head\">"
                  "<h3 id=\"box-title\">Launch</h3><span><button id=\"back\" "
                  "type=\"button\">Previous</button> "
                  "<button id=\"on\" type=\"button\">Next</button> "
                  "<button id=\"close\" type=\"button\" autofocus>Close</button></span></div>"
                  "<div class=\"body-of\"></div></dialog>\n";
}

} // namespace

std::string graph_page(const GraphView& view) {
    std::string style(graph_style());
    style += kStyle;
    return html_page(
        {.title = fmt::format("{}: {}", view.model,
                              view.step.shape.phase == graph::Phase::kDecode ? "a decode step"
                                                                             : "a prefill step"),
         .lead = describe_shape(view) + ". Click a box, or reach it with Tab, for its "
                                        "tensors and the contract of its op.",
         .body = body_of(view),
         .style = std::move(style),
         .script = std::string(kScript)});
}

} // namespace lr::report
