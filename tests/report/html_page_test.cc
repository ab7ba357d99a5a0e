// SPDX-License-Identifier: Apache-2.0
#include "report/html_page.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace lr::report {
namespace {

using Colours = std::map<std::string, std::string, std::less<>>; // "--page" -> "#ffffff"

// The variables of the n-th ":root {...}" of the page: 0 light, 1 dark, 2 print.
Colours colours(const std::string& html, int n) {
    std::size_t at = html.find(":root {");
    for (int i = 0; i < n; ++i)
        at = html.find(":root {", at + 1);
    const std::string block = html.substr(at, html.find('}', at) - at);
    Colours found;
    for (std::size_t name = block.find("--"); name != std::string::npos;
         name = block.find("--", name + 2)) {
        const std::size_t colon = block.find(':', name);
        found[block.substr(name, colon - name)] = block.substr(colon + 2, 7);
    }
    return found;
}

double channel(const std::string& colour, std::size_t at) {
    const double value = std::stoi(colour.substr(at, 2), nullptr, 16) / 255.0;
    return value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
}

double luminance(const std::string& colour) {
    return 0.2126 * channel(colour, 1) + 0.7152 * channel(colour, 3) + 0.0722 * channel(colour, 5);
}

// WCAG 2: 1 to 21.
double contrast(const std::string& a, const std::string& b) {
    const double x = luminance(a) + 0.05, y = luminance(b) + 0.05;
    return std::max(x, y) / std::min(x, y);
}

std::size_t count(std::string_view text, std::string_view part) {
    std::size_t found = 0;
    for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1))
        ++found;
    return found;
}

HtmlPage small_page() {
    return {
        .title = "a < b", .lead = "\"one\" & two", .body = "<p>x</p>", .style = "", .script = ""};
}

TEST(HtmlPage, EscapesTextAndAttributes) {
    EXPECT_EQ(html_escape("<b a=\"1\">'&é"), "&lt;b a=&quot;1&quot;&gt;&#39;&amp;é");
    EXPECT_EQ(html_escape(std::string_view("a\0b\x1b\tc\n", 7)), "a\uFFFDb\uFFFD\tc\n");
}

TEST(HtmlPage, HasOneHeadingALanguageAViewportAndALandmark) {
    const std::string html = html_page(small_page());
    EXPECT_TRUE(html.starts_with("<!doctype html>\n<html lang=\"en\">\n"));
    EXPECT_EQ(count(html, "<h1>"), 1u);
    EXPECT_NE(html.find("<title>a &lt; b</title>"), html.npos);
    EXPECT_NE(html.find("<h1>a &lt; b</h1><p>&quot;one&quot; &amp; two</p>"), html.npos);
    EXPECT_NE(html.find("content=\"width=device-width, initial-scale=1\""), html.npos);
    EXPECT_NE(html.find("<main id=\"main\">\n<p>x</p>\n</main>"), html.npos);
    EXPECT_EQ(html.find("user-scalable"), html.npos);
}

TEST(HtmlPage, LoadsNothing) {
    const std::string html = html_page(small_page());
    for (const char* part : {"http:", "https:", "src=", "url(", "@import", "<link"})
        EXPECT_EQ(html.find(part), html.npos) << part;
}

TEST(HtmlPage, EveryColourCanBeReadInEveryScheme) {
    const std::string html = html_page(small_page());
    for (int scheme = 0; scheme < 3; ++scheme) {
        const Colours c = colours(html, scheme);
        ASSERT_EQ(c.size(), 18u) << scheme;
        for (const char* ground : {"--page", "--panel"})
            for (const char* ink : {"--text", "--muted", "--link"})
                EXPECT_GE(contrast(c.at(ground), c.at(ink)), 4.5) << scheme << ground << ink;
        for (const char* mark : {"--live", "--pad", "--dead", "--zero", "--comm"}) {
            const std::string ink = std::string(mark) + "-ink";
            EXPECT_GE(contrast(c.at(mark), c.at(ink)), 4.5) << scheme << mark;
        }
        EXPECT_GE(contrast(c.at("--page"), c.at("--edge")), 3) << scheme;
        EXPECT_GE(contrast(c.at("--page"), c.at("--focus")), 3) << scheme;
    }
}

TEST(HtmlPage, TablesHaveACaptionAndHeadersOfColumnsAndRows) {
    Table table("rows < tiles", {{"expert", Align::kLeft}, {"rows"}});
    table.add({"<0>", "70"});
    table.add({"", "82"}); // no header without text
    EXPECT_EQ(
        html_table(table),
        "<div class=\"scroll\" role=\"group\" tabindex=\"0\" aria-label=\"rows &lt; tiles\">\n"
        "<table>\n<caption>rows &lt; tiles</caption>\n"
        "<thead><tr><th scope=\"col\">expert</th><th scope=\"col\" class=\"num\">rows</th></tr>"
        "</thead>\n<tbody>\n"
        "<tr><th scope=\"row\">&lt;0&gt;</th><td class=\"num\">70</td></tr>\n"
        "<tr><td></td><td class=\"num\">82</td></tr>\n"
        "</tbody>\n</table>\n</div>\n");
}

TEST(HtmlPage, TableWithoutRowsIsASentence) {
    EXPECT_EQ(html_table(Table("Fusions & more", {{"fusion", Align::kLeft}})),
              "<p>Fusions &amp; more: none.</p>\n");
}

TEST(HtmlPage, SectionsAreNamedByTheirHeadings) {
    EXPECT_EQ(html_section("tiles", "Tiles & rows", "x"),
              "<section aria-labelledby=\"tiles\">\n<h2 id=\"tiles\">Tiles &amp; rows</h2>\nx"
              "</section>\n");
    EXPECT_EQ(html_facts({{"rows", "<82>"}}),
              "<dl class=\"cards\">\n<div><dt>rows</dt><dd>&lt;82&gt;</dd></div>\n</dl>\n");
}

} // namespace
} // namespace lr::report
