// SPDX-License-Identifier: Apache-2.0
//
// text/jinja/filter_tables.h: where the filters of text/jinja/filters.h are listed, by what they
// take.
#pragma once

#include "text/jinja/filters.h"

#include <span>

namespace lr::text::jinja {

std::span<const Filter> text_filters();
std::span<const Filter> sequence_filters();
std::span<const Filter> lazy_filters(); // map, select and their kin

// Looks up what a filter's argument `attribute` names: "a.b", "0", 3, or nothing.
class AttributePath {
  public:
    // Parts lie in the arena: a copy is valid as long as the render.
    AttributePath(Context& context, const Value& attribute);
    // `fallback` (when not missing and not None) stands in for what is undefined.
    Value look_up(Context& context, Value item, const Value& fallback = {}) const;

  private:
    std::span<const Value> parts_;
};

} // namespace lr::text::jinja
