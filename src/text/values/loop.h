// SPDX-License-Identifier: Apache-2.0
//
// text/values/loop.h: the variable `loop` of a for statement, which also draws the items.
#pragma once

#include "text/values/iterate.h"

#include <optional>

namespace lr::text::jinja {

struct For; // text/jinja/ast.h

struct Loop {
    Iterator* items;
    std::optional<std::size_t> known_length;
    const For* recursive; // what loop(...) runs again, or nullptr
    Frame* outer;         // the frame around that statement
    int depth0;

    std::size_t count = 0;        // items drawn
    Value before, current, after; // `after` is missing unless it has been looked at
    Value last_changed;           // a tuple, or missing

    // Makes the next item `current`; false at the end.
    bool advance(Context& context);
    // Draws the rest when the length is not known.
    std::size_t length(Context& context);

  private:
    friend Value get_loop_attribute(Context& context, const Value& loop, std::string_view name);
    bool peek(Context& context);
};

// loop.index and so on; undefined for what loops do not have.
Value get_loop_attribute(Context& context, const Value& loop, std::string_view name);

} // namespace lr::text::jinja
