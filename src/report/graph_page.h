// SPDX-License-Identifier: Apache-2.0
//
// report/graph_page.h: a graph view as one HTML file: the drawing, the tables of
// report/graph_text.h, and for each launch its tensors, its cost and the contracts of its ops
// (ops/contract.h). A box opens its details beside the drawing; without JavaScript it is a link to
// them.
#pragma once

#include "report/graph_view.h"

#include <string>

namespace lr::report {

std::string graph_page(const GraphView& view);

} // namespace lr::report
