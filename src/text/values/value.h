// SPDX-License-Identifier: Apache-2.0
//
// text/values/value.h: what an expression of a template evaluates to: Python's values, as far as
// templates meet them. A Value is a few bytes; lists, dicts and strings lie in an arena.
//
// Strings know byte by byte what came from outside. The other kinds have one flag for it: a number
// of the data, or one computed from such, and a list or dict of the data itself.
#pragma once

#include "text/values/str.h"

#include <cstddef>
#include <span>
#include <string_view>

namespace lr::text::jinja {

// Integers are exact up to 127 bits; what would be larger is an error.
__extension__ typedef __int128 Int;

enum class Kind : std::uint8_t {
    kMissing, // a variable that was never assigned: no expression has this value
    kUndefined,
    kNone,
    kBool,
    kInt,
    kFloat,
    kString,
    kList,
    kTuple,
    kDict,
    kView, // keys(), values() or items() of a dict
    kRange,
    kIterator, // gives its items once: what map, select, items and reverse return
    kNamespace,
    kMacro,
    kFunction,
    kMethod,
    kLoop,
    kCycler,
    kJoiner,
};

struct Undefined;
struct Sequence;
struct Dict;
struct View;
struct Range;
struct Namespace;
struct Function;
struct Method;
struct Macro;
struct Loop; // text/values/loop.h
struct Cycler;
struct Joiner;
class Iterator; // text/values/iterate.h

class Value {
  public:
    Value() : integer_(0) {} // kMissing
    static Value none(bool outside = false);
    static Value of(bool value, bool outside = false);
    static Value of(Int value, bool outside = false);
    static Value of(double value, bool outside = false);
    static Value of(Str value, bool markup = false);
    static Value of(const Undefined* value) { return object(Kind::kUndefined, value); }
    static Value list(const Sequence* value, bool outside = false);
    static Value tuple(const Sequence* value, bool outside = false);
    static Value of(const Dict* value, bool outside = false);
    static Value of(const View* value) { return object(Kind::kView, value); }
    static Value of(const Range* value) { return object(Kind::kRange, value); }
    static Value of(const Iterator* value) { return object(Kind::kIterator, value); }
    static Value of(const Namespace* value) { return object(Kind::kNamespace, value); }
    static Value of(const Macro* value) { return object(Kind::kMacro, value); }
    static Value of(const Function* value) { return object(Kind::kFunction, value); }
    static Value of(const Method* value) { return object(Kind::kMethod, value); }
    static Value of(const Loop* value) { return object(Kind::kLoop, value); }
    static Value of(const Cycler* value) { return object(Kind::kCycler, value); }
    static Value of(const Joiner* value) { return object(Kind::kJoiner, value); }

    Kind kind() const { return kind_; }
    bool is(Kind kind) const { return kind_ == kind; }
    bool is_string() const { return kind_ == Kind::kString; }
    bool is_sequence() const { return kind_ == Kind::kList || kind_ == Kind::kTuple; }
    bool is_integer() const { return kind_ == Kind::kInt || kind_ == Kind::kBool; } // as in Python
    bool is_number() const { return is_integer() || kind_ == Kind::kFloat; }

    // The kind must fit.
    bool boolean() const { return boolean_; }
    Int integer() const { return kind_ == Kind::kBool ? Int{boolean_} : integer_; }
    double real() const { return real_; }
    Str string() const { return string_; }
    std::string_view view() const { return string_.view(); }
    const Sequence& sequence() const { return as<Sequence>(); }
    const Dict& dict() const { return as<Dict>(); }
    // The object behind any other kind.
    template <typename T> const T& as() const { return *static_cast<const T*>(object_); }
    template <typename T> T& as_mutable() const {
        return *static_cast<T*>(const_cast<void*>(object_));
    }
    const void* identity() const { return object_; }

    // Numbers, None and containers: the flag; strings: any byte.
    bool outside() const { return is_string() ? string_.any_outside() : outside_; }
    bool markup() const { return markup_; } // a string that escape or safe has made
    Value with_outside(bool outside) const; // for numbers and None

  private:
    static Value object(Kind kind, const void* object, bool outside = false);

    Kind kind_ = Kind::kMissing;
    bool outside_ = false;
    bool markup_ = false;
    union {
        bool boolean_;
        Int integer_;
        double real_;
        Str string_;
        const void* object_;
    };
};

struct Undefined {
    // What was looked for and where; `hint` alone when there is one.
    std::string_view name;
    std::string_view owner; // the type of the object without that attribute; "" for a variable
    std::string_view hint;
};

struct Sequence {
    const Value* items;
    std::size_t size;
    bool is_group; // a (grouper, list) of the filter groupby

    std::span<const Value> span() const { return {items, size}; }
};

struct Entry {
    Value key, value;
};

struct Dict {
    const Entry* entries; // keys distinct
    std::size_t size;
    const std::uint32_t* order; // indices of entries by key when all are strings, or nullptr

    std::span<const Entry> span() const { return {entries, size}; }
};

struct View {
    enum class What { kKeys, kValues, kItems };
    What what;
    Value dict;
};

struct Range {
    Int start, stop, step;
    std::size_t size;
    bool outside;

    Int at(std::size_t i) const { return start + step * static_cast<Int>(i); }
};

struct Namespace {
    Entry* attributes; // keys are strings
    std::size_t size, capacity;
};

struct NamedValue {
    std::string_view name;
    Value value;
    bool outside = false; // the name is a key of the data, given with **
};

struct Arguments {
    std::span<const Value> positional;
    std::span<const NamedValue> named;
};

struct Function {
    std::string_view name;
    Value (*call)(Context& context, const Arguments& arguments);
};

struct MethodInfo {
    std::string_view name;
    enum class Access {
        kAllowed,
        kMutates, // reads as undefined in the immutable sandbox
        kUnsupported,
    } access;
    Value (*call)(Context& context, const Value& self, const Arguments& arguments);
};

struct Method {
    Value self;
    const MethodInfo* info;
};

struct MacroBody; // text/jinja/ast.h
struct Frame;     // text/jinja/interpreter.h

// A macro, or the `caller` of a call block, with the frame it was made in.
struct Macro {
    const MacroBody& body;
    std::string_view name; // "" for a caller
    Frame* outer;
};

struct Cycler {
    const Value* items;
    std::size_t size;
    std::size_t position;
};

struct Joiner {
    Value separator;
    bool used;
};

std::string_view type_name(const Value& value); // Python's: "str", "NoneType"

Value new_list(Context& context, std::span<const Value> items);
Value new_tuple(Context& context, std::span<const Value> items);
Value new_string(Context& context, std::string_view text, bool outside = false);
Value new_undefined(Context& context, std::string_view name, std::string_view owner = {});
Value new_hint(Context& context, std::string_view hint); // `hint` outlives the render
[[noreturn]] void throw_undefined(const Value& undefined);

// Keys distinct, in the order given.
const Dict* make_dict(Arena& arena, std::span<const Entry> entries);

// nullptr when the dict has no such key, or when the value can be no key.
const Value* find(Context& context, const Dict& dict, const Value& key);
const Value* find(const Dict& dict, std::string_view key);

const Value* find(Context& context, const Namespace& attributes, std::string_view name);
void set(Context& context, Namespace& attributes, std::string_view name, const Value& value,
         bool outside_name = false);

} // namespace lr::text::jinja
