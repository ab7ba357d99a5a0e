// SPDX-License-Identifier: Apache-2.0
#include "text/values/loop.h"

#include "text/values/operators.h"

namespace lr::text::jinja {

namespace {

Value cycle(Context&, const Value& self, const Arguments& arguments) {
    if (!arguments.named.empty() || arguments.positional.empty())
        throw_error("loop.cycle: expected one or more items");
    const std::size_t index0 = self.as<Loop>().count - 1;
    return arguments.positional[index0 % arguments.positional.size()];
}

Value changed(Context& context, const Value& self, const Arguments& arguments) {
    if (!arguments.named.empty())
        throw_error("loop.changed: expected no argument by name");
    Loop& loop = self.as_mutable<Loop>();
    const Value now = new_tuple(context, arguments.positional);
    if (!loop.last_changed.is(Kind::kMissing) && equal(context, loop.last_changed, now))
        return Value::of(false);
    loop.last_changed = now;
    return Value::of(true);
}

constexpr MethodInfo kCycle = {"cycle", MethodInfo::Access::kAllowed, cycle};
constexpr MethodInfo kChanged = {"changed", MethodInfo::Access::kAllowed, changed};

Value integer(std::size_t value) {
    return Value::of(static_cast<Int>(value));
}

} // namespace

bool Loop::advance(Context& context) {
    Value item = after;
    after = Value();
    if (item.is(Kind::kMissing) && !items->next(context, item))
        return false;
    ++count;
    before = current;
    current = item;
    return true;
}

bool Loop::peek(Context& context) {
    return !after.is(Kind::kMissing) || items->next(context, after);
}

std::size_t Loop::length(Context& context) {
    if (known_length)
        return *known_length;
    const std::vector<Value> rest = collect(context, Value::of(items));
    items = &iterate(context, new_list(context, rest));
    known_length = rest.size() + count + (after.is(Kind::kMissing) ? 0 : 1);
    return *known_length;
}

Value get_loop_attribute(Context& context, const Value& value, std::string_view name) {
    Loop& loop = value.as_mutable<Loop>();
    if (name == "index")
        return integer(loop.count);
    if (name == "index0")
        return integer(loop.count - 1);
    if (name == "first")
        return Value::of(loop.count == 1);
    if (name == "last")
        return Value::of(!loop.peek(context));
    if (name == "length")
        return integer(loop.length(context));
    if (name == "revindex")
        return integer(loop.length(context) - loop.count + 1);
    if (name == "revindex0")
        return integer(loop.length(context) - loop.count);
    if (name == "previtem")
        return loop.count == 1 ? new_hint(context, "there is no previous item") : loop.before;
    if (name == "nextitem")
        return loop.peek(context) ? loop.after : new_hint(context, "there is no next item");
    if (name == "depth0")
        return Value::of(Int{loop.depth0});
    if (name == "depth")
        return Value::of(Int{loop.depth0} + 1);
    if (name == "cycle")
        return Value::of(context.arena.make<Method>(value, &kCycle));
    if (name == "changed")
        return Value::of(context.arena.make<Method>(value, &kChanged));
    return new_undefined(context, name, "loop");
}

} // namespace lr::text::jinja
