// SPDX-License-Identifier: Apache-2.0
#include "ops/contract.h"
#include "report/graph_page.h"
#include "report/graph_text.h"
#include "tests/report/graphs.h"

#include <set>

namespace lr::report {
namespace {

// The values of an attribute, in the order of the page.
std::vector<std::string> values_of(const std::string& html, const std::string& attribute) {
    std::vector<std::string> values;
    const std::string key = " " + attribute + "=\"";
    for (std::size_t at = html.find(key); at != std::string::npos; at = html.find(key, at + 1)) {
        const std::size_t begin = at + key.size();
        values.push_back(html.substr(begin, html.find('"', begin) - begin));
    }
    return values;
}

std::size_t count(const std::string& text, std::string_view what) {
    std::size_t found = 0;
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
        ++found;
    return found;
}

const std::string& traced_page() {
    static const std::string page =
        graph_page(*view_of("397B-A17B", "nvfp4-mixed", "decode", {"8+9"}, 2).view);
    return page;
}

TEST(GraphPage, LoadsNothingAndLeadsNowhereElse) {
    for (const char* loader : {"<link", "<img", " src=", "@import", "url(", "fetch(", "https://"})
        EXPECT_EQ(count(traced_page(), loader), 0u) << loader;
    // The only address is the name of SVG.
    EXPECT_EQ(count(traced_page(), "http://"), count(traced_page(), "http://www.w3.org/2000/svg"));
}

TEST(GraphPage, EveryLinkHasItsTargetAndEveryIdIsOne) {
    const std::vector<std::string> ids = values_of(traced_page(), "id");
    const std::set<std::string> known(ids.begin(), ids.end());
    EXPECT_EQ(known.size(), ids.size());
    int links = 0;
    for (const std::string& href : values_of(traced_page(), "href")) {
        ASSERT_TRUE(href.starts_with('#')) << href;
        EXPECT_TRUE(known.contains(href.substr(1))) << href;
        ++links;
    }
    EXPECT_GT(links, 100);
    for (const char* attribute : {"aria-labelledby"})
        for (const std::string& id : values_of(traced_page(), attribute))
            EXPECT_TRUE(known.contains(id)) << id;
}

// What a screen reader needs: drawings and boxes have names, buttons have words, tables captions.
TEST(GraphPage, SaysInWordsWhatItDraws) {
    const std::string& page = traced_page();
    EXPECT_EQ(count(page, "<svg "), count(page, "role=\"group\" aria-label=\""));
    EXPECT_EQ(count(page, "<table>"), count(page, "<caption>"));
    EXPECT_EQ(count(page, "<h1>"), 1u);
    EXPECT_NE(page.find("aria-label=\"7 gdn_packed_recurrent_qk_norm_gating_state_update: at least "
                        "54.06 us by memory\""),
              std::string::npos);
    EXPECT_NE(page.find("aria-label=\"1 input_allreduce_add_rmsnorm: at least 1.13 us by link, "
                        "communicates\""),
              std::string::npos);
    // Each box is drawn for two widths of page, and details are there without a script.
    EXPECT_EQ(count(page, "href=\"#decode-gdn-7\""), 2u);
    EXPECT_EQ(count(page, "<details class=\"node\" id=\"decode-gdn-7\">"), 1u);
}

TEST(GraphPage, HoldsTheContractOfEveryOpAndOfTheFusion) {
    const ViewOf made = view_of("397B-A17B", "nvfp4-mixed", "decode", {"8+9"}, 2);
    const std::string page = graph_page(*made.view);
    std::set<std::string_view> ops;
    for (const GraphSection& section : made.view->sections)
        for (const GraphBox& box : section.boxes)
            for (std::int32_t id : box.nodes)
                ops.insert(ops::op_stem(made.step->nodes[static_cast<std::size_t>(id)].args));
    EXPECT_GE(ops.size(), 20u);
    for (std::string_view op : ops)
        EXPECT_EQ(count(page, fmt::format("<section id=\"op-{}\">", op)), 1u) << op;
    EXPECT_NE(page.find("<dt>Rounding</dt><dd>"), std::string::npos);
    EXPECT_NE(page.find("Rewrite 8+9. Vanishes: one launch;"), std::string::npos);
}

TEST(GraphPage, MarksTheDependencyThatTheChartLeavesOut) {
    const std::string page =
        graph_page(*view_of("397B-A17B", "nvfp4-mixed", "prefill-gdn", {}, 2).view);
    EXPECT_NE(page.find("15 to 17 (h, v_new): a dependency that the traced chart leaves out."),
              std::string::npos);
    EXPECT_EQ(count(page, " added\" d=\""), 2u) << "one, for two widths of page";
}

TEST(GraphView, SumsItsBoxesAndKnowsTheLongestPath) {
    const ViewOf made = view_of("397B-A17B", "nvfp4-mixed", "decode-gdn", {}, 2);
    const GraphSection& section = made.section("decode-gdn");
    double floor = 0, on_path = 0;
    std::string path;
    for (const GraphBox& box : section.boxes) {
        floor += box.floor.us;
        if (box.on_path) {
            on_path += box.floor.us;
            path += box.number + " ";
        } else {
            EXPECT_GT(box.slack_us, 0) << box.number;
        }
    }
    EXPECT_DOUBLE_EQ(section.floor_us, floor);
    EXPECT_NEAR(section.path_us, on_path, 1e-9);
    EXPECT_EQ(path, "1 3 5 6 7 8 9 10 11 12 16 18 21 22 23 24 ");
    EXPECT_EQ(section.launches, 24);
}

TEST(GraphView, RefusesAPathThatTheModelHasNot) {
    auto config = *model::preset("0.8B");
    config.layers.assign(3, model::LayerKind::kGdn);
    const auto model = model::Model::declare(config, *model::format_policy("bf16"));
    const graph::Step step = graph::build(model, graph::decode_shape(1));
    const graph::Plan plan = graph::reference_plan(step);
    const graph::Machine h200 = *graph::machine("h200");
    const auto refused =
        graph_view(step, plan, h200, *path_choice("decode-attention"), "three layers");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message(),
              "path decode-attention: three layers has no layer of this kind");
    const auto all = graph_view(step, plan, h200, *path_choice("decode"), "three layers");
    ASSERT_TRUE(all);
    EXPECT_EQ(all->sections.size(), 3u) << "prologue, GDN, epilogue";
}

} // namespace
} // namespace lr::report
