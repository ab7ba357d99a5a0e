// SPDX-License-Identifier: Apache-2.0
#include "report/html_page.h"

#include "core/check.h"
#include "core/version.h"

namespace lr::report {
namespace {

// Colours: each pair below is held to its contrast by tests/report/html_page_test.cc.
constexpr std::string_view kStyle = R"css(
:root {
  color-scheme: light dark;
  --page: #ffffff; --panel: #f3f5f7; --text: #1b2127; --muted: #55606b; --line: #d3d9df;
  --edge: #66727e; --link: #0b5cad; --focus: #0b5cad;
  --live: #12805c; --live-ink: #ffffff; --pad: #f2c14e; --pad-ink: #2b2100;
  --dead: #dfe4e8; --dead-ink: #3d4751; --zero: #b4552d; --zero-ink: #ffffff;
  --comm: #6b4fb3; --comm-ink: #ffffff;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14181c; --panel: #1e242a; --text: #e6eaee; --muted: #a3afba; --line: #39434c;
    --edge: #8b98a4; --link: #7db8f5; --focus: #7db8f5;
    --live: #3fb68b; --live-ink: #04150e; --pad: #d9a93a; --pad-ink: #1f1700;
    --dead: #39434c; --dead-ink: #dbe2e8; --zero: #e08a62; --zero-ink: #240d02;
    --comm: #b39bf0; --comm-ink: #150b2e;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body {
  margin: 0; background: var(--page); color: var(--text);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif;
}
header, main, footer { max-width: 80rem; margin: 0 auto; padding: 0 1rem; }
header { padding-top: 1.5rem; }
h1, h2, h3, h4, p, summary { overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .5rem; }
h2 { font-size: 1.2rem; line-height: 1.3; margin: 2rem 0 .5rem; }
h3 { font-size: 1rem; margin: 1.25rem 0 .25rem; }
p { margin: .5rem 0; max-width: 70ch; }
code, pre, kbd { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size: .9em; }
pre { background: var(--panel); padding: .75rem; overflow-x: auto; border-radius: .375rem; }
a { color: var(--link); }
:focus-visible { outline: 3px solid var(--focus); outline-offset: 2px; }
.skip { position: absolute; left: -99rem; }
.skip:focus { left: 1rem; top: .5rem; background: var(--page); padding: .25rem .5rem; }
.note, footer { color: var(--muted); font-size: .875rem; }
footer { padding-top: 2rem; padding-bottom: 2rem; }
.scroll { overflow-x: auto; margin: .75rem 0; }
table { border-collapse: collapse; font-size: .9rem; }
caption { text-align: left; font-weight: 600; padding: .25rem 0; }
th, td { text-align: left; padding: .25rem .75rem; border-bottom: 1px solid var(--line); vertical-align: top; }
th:first-child, td:first-child { padding-left: .25rem; }
th:not(:last-child), td:not(:last-child) { white-space: nowrap; }
td:last-child { min-width: 8rem; }
td.num:last-child { min-width: 0; }
thead th { border-bottom: 2px solid var(--edge); vertical-align: bottom; }
tbody th { font-weight: 400; }
.num { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(8.5rem, 1fr)); gap: .5rem; margin: .75rem 0; }
.cards > div { background: var(--panel); border-radius: .375rem; padding: .5rem .75rem; }
.cards dt { color: var(--muted); font-size: .875rem; }
.cards dd { margin: 0; font-size: 1.15rem; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.swatch { display: inline-block; width: 1em; height: 1em; border: 1px solid var(--edge); vertical-align: -.15em; }
svg text { font-family: inherit; }
@media (max-width: 40rem) {
  h1 { font-size: 1.3rem; }
  th, td { padding: .25rem .5rem; }
  .cards { grid-template-columns: repeat(auto-fill, minmax(8rem, 1fr)); }
}
@media print {
  :root {
    color-scheme: light;
    --page: #ffffff; --panel: #ffffff; --text: #000000; --muted: #333333; --line: #999999;
    --edge: #444444; --link: #000000; --focus: #000000;
    --live: #12805c; --live-ink: #ffffff; --pad: #f2c14e; --pad-ink: #2b2100;
    --dead: #dfe4e8; --dead-ink: #3d4751; --zero: #b4552d; --zero-ink: #ffffff;
    --comm: #6b4fb3; --comm-ink: #ffffff;
  }
  * { -webkit-print-color-adjust: exact; print-color-adjust: exact; }
  body { font-size: 10pt; }
  header, main, footer { max-width: none; padding: 0; }
  .hide-print, .skip { display: none; }
  .scroll, pre { overflow: visible; }
  table { font-size: 7pt; }
  th, td { padding: 1pt 3pt; overflow-wrap: break-word; }
  tr, figure, .cards > div { break-inside: avoid; }
  h2, h3, caption { break-after: avoid; }
  thead { display: table-header-group; }
  details::details-content { content-visibility: visible; height: auto; }
}
@media (prefers-reduced-motion: reduce) { * { transition: none !important; animation: none !important; } }
)css";

std::string_view reference(char c) {
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return {};
    }
}

bool forbidden(char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\t' && c != '\n' && c != '\r') || byte == 0x7F;
}

void append_cell(std::string& html, std::string_view tag, std::string_view scope, Align align,
                 std::string_view text) {
    html += fmt::format("<{}{}{}>{}</{}>", tag, scope,
                        align == Align::kRight ? " class=\"num\"" : "", html_escape(text), tag);
}

} // namespace

std::string html_escape(std::string_view utf8) {
    std::string html;
    html.reserve(utf8.size());
    for (char c : utf8) {
        if (forbidden(c))
            html += "\xEF\xBF\xBD";
        else if (const std::string_view text = reference(c); !text.empty())
            html += text;
        else
            html += c;
    }
    return html;
}

std::string html_page(const HtmlPage& page) {
    LR_CHECK(page.style.find("</") == std::string::npos);
    LR_CHECK(page.script.find("</") == std::string::npos);
    std::string html = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                       "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
    html += fmt::format("<meta name=\"generator\" content=\"liverow {}\">\n", kVersion);
    html += fmt::format("<title>{}</title>\n<style>{}{}</style>\n</head>\n<body>\n",
                        html_escape(page.title), kStyle, page.style);
    html += "<a class=\"skip\" href=\"#main\">Skip to the content</a>\n";
    html += fmt::format("<header><h1>{}</h1>", html_escape(page.title));
    if (!page.lead.empty())
        html += fmt::format("<p>{}</p>", html_escape(page.lead));
    html += fmt::format("</header>\n<main id=\"main\">\n{}\n</main>\n", page.body);
    html +=
        fmt::format("<footer>Written by liverow {}. This file loads nothing.</footer>\n", kVersion);
    if (!page.script.empty())
        html += fmt::format("<script>{}</script>\n", page.script);
    return html + "</body>\n</html>\n";
}

std::string html_table(const Table& table) {
    if (table.rows.empty())
        return fmt::format("<p>{}: none.</p>\n", html_escape(table.caption));
    std::string html = fmt::format(
        "<div class=\"scroll\" role=\"group\" tabindex=\"0\" aria-label=\"{}\">\n<table>\n"
        "<caption>{}</caption>\n<thead><tr>",
        html_escape(table.caption), html_escape(table.caption));
    for (const Column& column : table.columns)
        append_cell(html, "th", " scope=\"col\"", column.align, column.title);
    html += "</tr></thead>\n<tbody>\n";
    for (const auto& row : table.rows) {
        html += "<tr>";
        for (std::size_t c = 0; c < row.size(); ++c) {
            const bool header = c == 0 && !row[c].empty(); // a header without text names nothing
            append_cell(html, header ? "th" : "td", header ? " scope=\"row\"" : "",
                        table.columns[c].align, row[c]);
        }
        html += "</tr>\n";
    }
    return html + "</tbody>\n</table>\n</div>\n";
}

std::string html_section(std::string_view id, std::string_view title, std::string_view content) {
    return fmt::format("<section aria-labelledby=\"{}\">\n<h2 id=\"{}\">{}</h2>\n{}</section>\n",
                       id, id, html_escape(title), content);
}

std::string html_facts(const std::vector<std::pair<std::string, std::string>>& facts) {
    std::string html = "<dl class=\"cards\">\n";
    for (const auto& [name, value] : facts)
        html += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", html_escape(name),
                            html_escape(value));
    return html + "</dl>\n";
}

} // namespace lr::report
