// SPDX-License-Identifier: Apache-2.0
//
// The figures of the experts page. Each says in a sentence what it shows, and stands above a table
// of the same numbers; colours are told apart by pattern as well.
#include "report/experts_parts.h"
#include "report/html_page.h"

#include <algorithm>

namespace lr::report {
namespace {

using namespace experts;

constexpr std::int64_t kCells = 256;    // programs that are drawn one by one, with their numbers
constexpr std::int64_t kSquares = 4096; // row blocks that are drawn at all
constexpr std::int64_t kLanes = 32, kLaneTiles = 40;

constexpr std::string_view kStyle = R"css(
figure { margin: .75rem 0 1.25rem; }
figcaption { margin-bottom: .5rem; max-width: 70ch; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .25rem 1rem; margin: 0 0 .5rem; padding: 0; font-size: .875rem; }
.m { display: block; height: 100%; }
.m.live { background: var(--live); }
.m.pad { background: repeating-linear-gradient(45deg, var(--pad) 0 5px, var(--pad-ink) 5px 6px); }
.m.dead { background: var(--dead); }
.m.zero { background: repeating-linear-gradient(-45deg, var(--zero) 0 3px, var(--zero-ink) 3px 4px); }
.m.exit { background: var(--page); }
.legend .m { display: inline-block; width: 1.5rem; height: .9rem; border: 1px solid var(--edge); vertical-align: -.1rem; }
.bars { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 24rem), 1fr)); gap: .3rem 1.5rem; font-size: .875rem; }
.bars.few { grid-template-columns: minmax(0, 60rem); }
.bars > div { display: grid; grid-template-columns: 5.5rem 1fr 8.5rem; gap: .5rem; align-items: center; }
.track { position: relative; display: flex; height: 1.1rem; border: 1px solid var(--edge); overflow: hidden; }
.track::after { content: ""; position: absolute; inset: 0; background: repeating-linear-gradient(90deg, transparent 0 calc(var(--step) - 2px), var(--page) calc(var(--step) - 2px) calc(var(--step) - 1px), var(--text) calc(var(--step) - 1px) var(--step)); }
.cells { display: grid; gap: .35rem; font-size: .8rem; line-height: 1.3; }
.cells > div { background: var(--panel); border: 1px solid var(--line); padding: .25rem .4rem; font-variant-numeric: tabular-nums; }
.cells .track::after { content: none; }
.cells .track { height: .8rem; margin-bottom: .15rem; }
.squares { display: grid; grid-template-columns: repeat(auto-fill, .9rem); gap: 2px; }
.squares > span { display: flex; height: .9rem; border: 1px solid var(--edge); }
.lanes { display: grid; gap: .25rem; font-size: .8rem; }
.lanes > div { display: flex; gap: .25rem; align-items: center; }
.lanes b { font-weight: 400; flex: 0 0 4rem; }
.lanes span { flex: 0 0 3.6rem; text-align: center; background: var(--live); color: var(--live-ink); padding: .1rem 0; border-radius: .2rem; }
@media (max-width: 40rem) {
  .bars > div { grid-template-columns: 1fr auto; gap: 0 .5rem; }
  .bars .track { grid-area: 2 / 1 / 3 / 3; }
}
)css";

struct Legend {
    const char* mark;
    const char* text;
};

std::string legend(std::initializer_list<Legend> entries) {
    std::string html = "<ul class=\"legend\">";
    for (const Legend& entry : entries)
        html += fmt::format("<li><span class=\"m {}\"></span> {}</li>", entry.mark, entry.text);
    return html + "</ul>\n";
}

// A stretch of a track, as a share of its whole length.
std::string mark(const char* kind, std::int64_t part, std::int64_t whole) {
    if (part <= 0 || whole <= 0)
        return "";
    return fmt::format("<i class=\"m {}\" style=\"width:{:.3f}%\"></i>", kind,
                       100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string figure(const std::string& caption, const std::string& content) {
    return fmt::format("<figure>\n<figcaption>{}</figcaption>\n{}</figure>\n", caption, content);
}

std::string more(std::int64_t hidden, const char* what) {
    return hidden > 0 ? fmt::format(" {} more {} are not drawn.", group_digits(hidden), what) : "";
}

// What a row block is made of, as the inside of a track.
std::string block_marks(const Launch& launch, const RowBlock& block) {
    if (block.action == Action::kExit)
        return mark("exit", 1, 1);
    if (block.action == Action::kZero)
        return launch.list ? mark("zero", block.live, launch.block) +
                                 mark("pad", launch.block - block.live, launch.block)
                           : mark("zero", 1, 1);
    return mark("live", block.live, launch.block) +
           mark("pad", launch.block - block.live, launch.block);
}

std::string cell_text(const RowBlock& block, std::int64_t pid, std::int64_t tile) {
    switch (block.action) {
    case Action::kCompute:
        return fmt::format("<div>program {}, T{}</div><div>expert {}, {} rows</div>", pid, tile,
                           block.expert, block.live);
    case Action::kZero:
        return fmt::format("<div>program {}</div><div>zeroes</div>", pid);
    case Action::kExit:
        break;
    }
    return fmt::format("<div>program {}</div><div>exits</div>", pid);
}

// A cell for each program: a line for each row block, a column for each column block.
std::string cells(const Problem& p, const Launch& launch) {
    std::string html = fmt::format(
        "<div class=\"cells\" style=\"grid-template-columns:repeat({},minmax(7.5rem,1fr));"
        "max-width:{}rem\">",
        launch.column_blocks, 24 * launch.column_blocks);
    std::int64_t tile = 0;
    for (std::int64_t m = 0; m < std::ssize(launch.blocks); ++m)
        for (std::int64_t n = 0; n < launch.column_blocks; ++n) {
            const RowBlock& block = launch.blocks[static_cast<std::size_t>(m)];
            html += fmt::format("<div><div class=\"track\">{}</div>{}</div>",
                                block_marks(launch, block),
                                cell_text(block, program_of(launch, p.tiling, m, n), tile));
            tile += block.action == Action::kCompute ? 1 : 0;
        }
    return html + "</div>\n";
}

// Row blocks that are drawn as squares: all, or those that compute where all are too many.
std::vector<RowBlock> drawn_blocks(const Launch& launch) {
    if (std::ssize(launch.blocks) <= kSquares)
        return launch.blocks;
    std::vector<RowBlock> computing;
    for (const RowBlock& block : launch.blocks)
        if (block.action == Action::kCompute && std::ssize(computing) < kSquares)
            computing.push_back(block);
    return computing;
}

std::string squares(const Launch& launch) {
    std::string html = "<div class=\"squares\">";
    for (const RowBlock& block : drawn_blocks(launch))
        html += fmt::format("<span>{}</span>", block_marks(launch, block));
    return html + "</div>\n";
}

} // namespace

std::string_view figure_style() {
    return kStyle;
}

std::string rows_figure(const ExpertsInput& input) {
    const Problem& p = input.problem;
    const Launch launch = gate_up_launch(p);
    std::vector<std::int64_t> covered(static_cast<std::size_t>(p.local()), 0);
    for (const RowBlock& block : launch.blocks)
        if (block.action == Action::kCompute)
            covered[static_cast<std::size_t>(block.expert)] += launch.block;
    const std::vector<std::int32_t> counts = count_rows(p.routing);
    const std::int64_t widest =
        std::max(p.capacity, *std::max_element(covered.begin(), covered.end()));
    const std::int64_t shown = shown_rows(input, p.local());
    const double step = 100.0 * static_cast<double>(launch.block) / static_cast<double>(widest);
    // Lines closer than this would be all there is to see.
    const std::string lines = fmt::format("--step:{:.3f}%", step < 2 ? 200.0 : step);
    constexpr std::int64_t kFew = 12; // these have the whole width
    std::string bars = fmt::format("<div class=\"bars{}\">\n", shown <= kFew ? " few" : "");
    for (std::int64_t e = 0; e < shown; ++e) {
        const std::int64_t live = counts[static_cast<std::size_t>(e)];
        const std::int64_t cover = std::max(covered[static_cast<std::size_t>(e)], live);
        bars += fmt::format("<div><span>expert {}</span><div class=\"track\" style=\"{}\">{}{}{}"
                            "</div><span>{} live, {} padded</span></div>\n",
                            e, lines, mark("live", live, widest), mark("pad", cover - live, widest),
                            mark("dead", widest - cover, widest), live, cover - live);
    }
    return figure(
        fmt::format("The {} rows that an expert can have: live ones, those that its tiles "
                    "cover besides, and dead ones that no tile touches. Lines are row "
                    "blocks of {}.{}",
                    group_digits(p.capacity), launch.block, more(p.local() - shown, "experts")),
        legend({{"live", "live"}, {"pad", "padded"}, {"dead", "dead"}}) + bars + "</div>\n");
}

std::string programs_figure(const ExpertsInput& input) {
    const Launch launch = gate_up_launch(input.problem);
    const Programs programs = count_programs(launch);
    const auto blocks = std::ssize(launch.blocks);
    const bool each = programs.launched <= kCells;
    const std::string caption = fmt::format(
        "The tile map: {} {} Of {} programs {} compute, {} zero and {} exit.{}", blocks,
        each ? fmt::format("row blocks (lines) by {} column blocks.", launch.column_blocks)
             : fmt::format("row blocks, one square each, which {} programs share.",
                           launch.column_blocks),
        group_digits(programs.launched), group_digits(programs.computing),
        group_digits(programs.zeroing), group_digits(programs.exiting),
        more(each ? 0 : blocks - std::ssize(drawn_blocks(launch)), "row blocks"));
    const std::string map = each ? cells(input.problem, launch) : squares(launch);
    return figure(caption, legend({{"live", "live rows, computed"},
                                   {"pad", "padding"},
                                   {"zero", "dead rows, zeroed"},
                                   {"exit", "exits"}}) +
                               (each ? "<div class=\"scroll\" role=\"group\" tabindex=\"0\" "
                                       "aria-label=\"Tile map\">" +
                                           map + "</div>\n"
                                     : map));
}

std::string schedule_figure(const ExpertsInput& input) {
    const Problem& p = input.problem;
    const Launch launch = gate_up_launch(p);
    const std::vector<WorkTile> tiles = work_list(launch);
    const std::int64_t lanes = std::min(p.ctas, kLanes);
    const std::int64_t rounds = round_count(std::ssize(tiles), p.ctas);
    std::string html = "<div class=\"scroll\" role=\"group\" tabindex=\"0\" "
                       "aria-label=\"Lanes of the CTAs\"><div class=\"lanes\">\n";
    for (std::int64_t c = 0; c < lanes; ++c) {
        html += fmt::format("<div><b>CTA {}</b>", c);
        const std::vector<std::int32_t> mine = tiles_of_cta(std::ssize(tiles), p.ctas, c);
        for (std::int64_t i = 0; i < std::min(kLaneTiles, std::ssize(mine)); ++i) {
            const std::int32_t tile = mine[static_cast<std::size_t>(i)];
            const auto block =
                static_cast<std::size_t>(tiles[static_cast<std::size_t>(tile)].block);
            html += fmt::format("<span>T{} e{}</span>", tile, launch.blocks[block].expert);
        }
        html += "</div>\n";
    }
    return figure(
        fmt::format("Tiles in the order in which each CTA takes them, with their experts: "
                    "{} rounds.{}{}",
                    rounds, more(p.ctas - lanes, "CTAs"), more(rounds - kLaneTiles, "rounds")),
        html + "</div></div>\n");
}

} // namespace lr::report
