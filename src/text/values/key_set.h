// SPDX-License-Identifier: Apache-2.0
//
// text/values/key_set.h: the values that Python can hash, each once: what a dict's keys and the
// filter unique need.
#pragma once

#include "text/values/value.h"

#include <map>

namespace lr::text::jinja {

class KeySet {
  public:
    explicit KeySet(Context& context) : context_(context) {}

    struct Place {
        std::size_t number; // of insertion, from 0
        bool is_new;
    };
    // Lists, dicts and what holds them are an error. 1, 1.0 and true are one value.
    Place insert(const Value& key);

  private:
    Context& context_;
    std::size_t size_ = 0;
    std::map<std::string_view, std::size_t> strings_;
    std::map<Int, std::size_t> integers_;
    std::map<double, std::size_t> reals_; // no integers
    std::vector<std::pair<Value, std::size_t>> others_;
};

// Throws unless the value can be hashed.
void expect_hashable(Context& context, const Value& value);

// Puts a dict together: a key given twice keeps its first place and its last value.
class DictBuilder {
  public:
    explicit DictBuilder(Context& context) : context_(context), keys_(context) {}
    void set(const Value& key, const Value& value);
    Value finish() { return Value::of(make_dict(context_.arena, entries_)); }

  private:
    Context& context_;
    KeySet keys_;
    std::vector<Entry> entries_;
};

} // namespace lr::text::jinja
