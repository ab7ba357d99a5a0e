// SPDX-License-Identifier: Apache-2.0
#include "text/values/key_set.h"

#include "text/values/numbers.h"
#include "text/values/operators.h"

#include <cmath>

namespace lr::text::jinja {

void expect_hashable(Context& context, const Value& value) {
    const Nesting nesting(context);
    context.step();
    if (value.is(Kind::kList) || value.is(Kind::kDict) || value.is(Kind::kView))
        throw_error("expected a value that can be a key, got a {}", type_name(value));
    if (value.is(Kind::kTuple))
        for (const Value& item : value.sequence().span())
            expect_hashable(context, item);
}

KeySet::Place KeySet::insert(const Value& key) {
    const auto place = [&](const auto& inserted) {
        const bool is_new = inserted.second;
        size_ += is_new ? 1 : 0;
        return Place{inserted.first->second, is_new};
    };
    if (key.is_string())
        return place(strings_.emplace(key.view(), size_));
    if (key.is_integer())
        return place(integers_.emplace(key.integer(), size_));
    if (key.is(Kind::kFloat)) {
        if (const std::optional<Int> whole = exact_integer(key.real()))
            return place(integers_.emplace(*whole, size_));
        if (!std::isnan(key.real()))
            return place(reals_.emplace(key.real(), size_));
        return {size_++, true}; // not equal to itself
    }
    expect_hashable(context_, key);
    context_.step(others_.size() / 16 + 1);
    for (const auto& [other, number] : others_)
        if (equal(context_, other, key))
            return {number, false};
    others_.emplace_back(key, size_);
    return {size_++, true};
}

void DictBuilder::set(const Value& key, const Value& value) {
    const KeySet::Place place = keys_.insert(key);
    if (!place.is_new) {
        entries_[place.number].value = value;
        return;
    }
    context_.arena.charge(sizeof(Entry));
    entries_.push_back({key, value});
}

} // namespace lr::text::jinja
