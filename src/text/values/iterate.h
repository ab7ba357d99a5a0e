// SPDX-License-Identifier: Apache-2.0
//
// text/values/iterate.h: drawing the items of a value one after the other.
#pragma once

#include "text/values/value.h"

namespace lr::text::jinja {

// Lies in an arena. Drawing an item may run filters, and so may throw.
class Iterator {
  public:
    // False at the end, and `item` is as before.
    virtual bool next(Context& context, Value& item) = 0;

  protected:
    ~Iterator() = default;
};

// Lists and tuples give items, dicts keys, strings characters, undefined nothing. An iterator gives
// itself: what has been drawn is gone. Anything else is an error.
Iterator& iterate(Context& context, const Value& value);
bool is_iterable(const Value& value);

// All the items, drawn.
std::vector<Value> collect(Context& context, const Value& value);

// The entries of a dict as keys, values or (key, value) tuples.
Iterator& iterate_dict(Context& context, const Dict& dict, View::What what);
// From the last to the first; nullptr for what Python cannot reverse without a list of it.
Iterator* iterate_reversed(Context& context, const Value& value);

} // namespace lr::text::jinja
