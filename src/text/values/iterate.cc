// SPDX-License-Identifier: Apache-2.0
#include "text/values/iterate.h"

#include "text/values/characters.h"

#include <array>

namespace lr::text::jinja {

namespace {

class SequenceIterator final : public Iterator {
  public:
    explicit SequenceIterator(std::span<const Value> items) : items_(items) {}
    bool next(Context& context, Value& item) override {
        if (next_ == items_.size())
            return false;
        context.step();
        item = items_[next_++];
        return true;
    }

  private:
    std::span<const Value> items_;
    std::size_t next_ = 0;
};

class CharacterIterator final : public Iterator {
  public:
    explicit CharacterIterator(Str text) : text_(text) {}
    bool next(Context& context, Value& item) override {
        if (text_.empty())
            return false;
        context.step();
        const auto length = static_cast<std::size_t>(character_at(text_.view(), 0).length);
        item = Value::of(text_.sub(0, length));
        text_ = text_.sub(length);
        return true;
    }

  private:
    Str text_;
};

class RangeIterator final : public Iterator {
  public:
    explicit RangeIterator(const Range& range) : range_(range) {}
    bool next(Context& context, Value& item) override {
        if (next_ == range_.size)
            return false;
        context.step();
        item = Value::of(range_.at(next_++), range_.outside);
        return true;
    }

  private:
    const Range& range_;
    std::size_t next_ = 0;
};

class DictIterator final : public Iterator {
  public:
    DictIterator(const Dict& dict, View::What what) : dict_(dict), what_(what) {}
    bool next(Context& context, Value& item) override {
        if (next_ == dict_.size)
            return false;
        context.step();
        const Entry& entry = dict_.entries[next_++];
        if (what_ == View::What::kItems)
            item = new_tuple(context, std::array{entry.key, entry.value});
        else
            item = what_ == View::What::kKeys ? entry.key : entry.value;
        return true;
    }

  private:
    const Dict& dict_;
    const View::What what_;
    std::size_t next_ = 0;
};

} // namespace

Iterator& iterate_dict(Context& context, const Dict& dict, View::What what) {
    return *context.arena.make<DictIterator>(dict, what);
}

bool is_iterable(const Value& value) {
    switch (value.kind()) {
    case Kind::kUndefined:
    case Kind::kString:
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kDict:
    case Kind::kView:
    case Kind::kRange:
    case Kind::kIterator:
    case Kind::kLoop:
        return true;
    default:
        return false;
    }
}

Iterator& iterate(Context& context, const Value& value) {
    switch (value.kind()) {
    case Kind::kUndefined:
        return *context.arena.make<SequenceIterator>(std::span<const Value>());
    case Kind::kString:
        return *context.arena.make<CharacterIterator>(value.string());
    case Kind::kList:
    case Kind::kTuple:
        return *context.arena.make<SequenceIterator>(value.sequence().span());
    case Kind::kDict:
        return iterate_dict(context, value.dict(), View::What::kKeys);
    case Kind::kView:
        return iterate_dict(context, value.as<View>().dict.dict(), value.as<View>().what);
    case Kind::kRange:
        return *context.arena.make<RangeIterator>(value.as<Range>());
    case Kind::kIterator:
        return value.as_mutable<Iterator>();
    case Kind::kLoop:
        throw_unsupported("drawing items from a loop");
    default:
        throw_error("expected something with items, got a {}", type_name(value));
    }
}

std::vector<Value> collect(Context& context, const Value& value) {
    std::vector<Value> items;
    if (value.is_sequence()) {
        const std::span<const Value> span = value.sequence().span();
        context.step(span.size());
        items.assign(span.begin(), span.end());
        return items;
    }
    Iterator& iterator = iterate(context, value);
    Value item;
    while (iterator.next(context, item)) {
        context.arena.charge(sizeof(Value));
        items.push_back(item);
    }
    return items;
}

Iterator* iterate_reversed(Context& context, const Value& value) {
    const bool reversible = value.is_string() || value.is_sequence() || value.is(Kind::kDict) ||
                            value.is(Kind::kView) || value.is(Kind::kRange) ||
                            value.is(Kind::kUndefined);
    if (!reversible)
        return nullptr;
    std::vector<Value> items = collect(context, value);
    std::reverse(items.begin(), items.end());
    const Value list = new_list(context, items);
    return context.arena.make<SequenceIterator>(list.sequence().span());
}

} // namespace lr::text::jinja
