// SPDX-License-Identifier: Apache-2.0
//
// Views of steps for tests of what is drawn and written of them.
#pragma once

#include "report/graph_view.h"
#include "tests/graph/steps.h"

#include <memory>

namespace lr::report {

// A view with the step and the plan that it points to.
struct ViewOf {
    std::unique_ptr<graph::Step> step;
    std::unique_ptr<graph::Plan> plan;
    std::unique_ptr<GraphView> view;

    const GraphSection& section(std::string_view id) const {
        for (const GraphSection& section : view->sections)
            if (section.id == id)
                return section;
        ADD_FAILURE() << "no section " << id;
        return view->sections.front();
    }
};

inline ViewOf view_of(const char* preset, const char* format, const char* path,
                      std::initializer_list<const char*> rewrites = {}, std::int32_t tp = 1) {
    const PathChoice choice = *path_choice(path);
    const bool decode = choice.phase == graph::Phase::kDecode;
    ViewOf made;
    made.step = std::make_unique<graph::Step>(graph::build(
        graph::declare_layers(preset, format, 8),
        decode ? graph::decode_shape(54) : graph::prefill_shape(512), {.tp = tp}, {.w4a4 = true}));
    made.plan = std::make_unique<graph::Plan>(graph::reference_plan(*made.step));
    for (const char* name : rewrites)
        *made.plan = *graph::apply_rewrite(*made.step, *made.plan, name);
    auto view = graph_view(*made.step, *made.plan, *graph::machine("h200"), choice, preset);
    EXPECT_TRUE(view) << (view ? "" : view.error().message());
    made.view = std::make_unique<GraphView>(std::move(*view));
    return made;
}

} // namespace lr::report
