// SPDX-License-Identifier: Apache-2.0
//
// report/html_page.h: the shell of every page that liverow writes: one file that loads nothing,
// light or dark as the reader's system asks, readable on a phone, on paper and by a screen reader.
//
// What the shell's style offers to a page's body:
//   variables  --page --panel --text --muted --line --link --focus; for marks, each with an -ink
//              that can be read on it: --live --pad --dead --zero --comm (communication)
//   classes    num (a number: right, even digits), cards (facts side by side), scroll (a wide thing
//              that scrolls alone), note (smaller, muted), swatch (a colour in a legend),
//              hide-print
// Text on --page, --panel and on every mark (with its -ink) has a contrast of at least 4.5 : 1 in
// both schemes, and a mark against --page 3 : 1 by its own edge (--edge).
#pragma once

#include "report/table.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lr::report {

// Text as it stands in an element or in a quoted attribute: & < > " ' are written as references;
// control characters that HTML forbids become U+FFFD.
std::string html_escape(std::string_view utf8);

struct HtmlPage {
    std::string title;  // plain text: the tab's title and the page's only h1
    std::string lead;   // plain text below it; "" for none
    std::string body;   // HTML of <main>; sections begin with h2
    std::string style;  // more CSS; without "</"
    std::string script; // JavaScript that runs when the page stands; without "</". The page must
                        // say everything without it.
};

// The whole document. Everything a page shows is in it.
std::string html_page(const HtmlPage& page);

// <table> in a block that scrolls alone, with a caption, column and row headers. Cells are text;
// the last column's may wrap. Without rows a sentence.
std::string html_table(const Table& table);

// "<h2 id=..>title</h2>" around its content: <section aria-labelledby=..>. `id` is [a-z0-9-]+.
std::string html_section(std::string_view id, std::string_view title, std::string_view content);

// A row of facts, name over value: a description list. Plain text.
std::string html_facts(const std::vector<std::pair<std::string, std::string>>& facts);

} // namespace lr::report
