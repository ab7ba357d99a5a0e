// SPDX-License-Identifier: Apache-2.0
//
// text/jinja/ast.h: a template as the interpreter runs it. All of it lies in one arena and is never
// changed once made.
#pragma once

#include "text/jinja/filters.h"
#include "text/values/operators.h"

#include <cstdint>
#include <span>
#include <string_view>

namespace lr::text::jinja {

// A variable: its slot in the frame `up` levels out.
struct Variable {
    std::uint32_t up = 0, slot = 0;
};

// What a slot holds when its frame begins.
struct SlotStart {
    enum class Kind {
        kParameter, // whoever opens the frame puts it there
        kUndefined,
        kResolve, // the render's variable or the function Program::names[name]
        kAlias,   // what `outer` (seen from this frame) holds
    };
    Kind kind = Kind::kUndefined;
    std::uint32_t name = 0;
    Variable outer;
};

struct FrameLayout {
    std::span<const SlotStart> slots;
};

enum class ExprKind : std::uint8_t {
    kConstant,
    kName,
    kTuple,
    kList,
    kDict,        // items: key, value, key, value, ...
    kNot,         // items: operand
    kSign,        // items: operand; op: Sign
    kArithmetic,  // items: left, right; op: Arithmetic
    kAnd,         // items: left, right
    kOr,          // items: left, right
    kConcat,      // items: all that '~' joins
    kCompare,     // items: n + 1 operands; comparisons: n
    kConditional, // items: test, then[, else]
    kAttribute,   // items: object; name
    kItem,        // items: object, key
    kSlice,       // items: object, start, stop, step
    kCall,        // items: callee, arguments by place; call
    kFilter,      // items: value (nullptr: the text of the block), arguments; name, call, filter
    kTest,        // items: value, arguments; name, call, test
};

struct Expr;
struct NamedExpr {
    std::string_view name;
    Expr* value;
};
struct CallArguments {
    std::span<const NamedExpr> named;
    Expr* sequence = nullptr; // *sequence
    Expr* mapping = nullptr;  // **mapping
};

struct Expr {
    ExprKind kind;
    std::uint8_t op = 0;
    std::uint16_t height = 1; // of the tree of expressions below
    std::uint32_t at = 0;     // byte of the source
    std::span<Expr* const> items;
    std::string_view name;
    Variable variable;                       // kName
    const Value* constant = nullptr;         // kConstant
    const Comparison* comparisons = nullptr; // kCompare
    const CallArguments* call = nullptr;     // kCall, kFilter, kTest
    const Filter* filter = nullptr;          // nullptr: unknown, an error where it is run
    const Test* test = nullptr;
};

// What is assigned to.
struct Target {
    enum class Kind { kName, kAttribute, kTuple };
    Kind kind;
    std::uint32_t at;
    std::string_view name;
    std::string_view attribute; // kAttribute: of the namespace `name`
    Variable variable;
    std::span<Target* const> items; // kTuple
};

enum class StatementKind : std::uint8_t {
    kOutput,
    kIf,
    kFor,
    kSet,
    kSetBlock,
    kMacro,
    kCallBlock,
    kFilterBlock,
    kWith,
    kGeneration,
    kBreak,
    kContinue,
};

struct Statement {
    StatementKind kind;
    std::uint32_t at;
};
using Body = std::span<Statement* const>;

struct Output : Statement {
    std::span<Expr* const> items; // text is a constant
};

struct Branch {
    Expr* test;
    Body body;
};
struct If : Statement {
    std::span<const Branch> branches; // if, elif, ...
    Body otherwise;
};

struct For : Statement {
    Target* target;
    Target* test_target; // the same, in test_frame
    Expr* items;
    Expr* test; // nullptr: every item
    bool recursive;
    Body body, otherwise;
    FrameLayout frame;      // slot 0 is `loop`
    FrameLayout test_frame; // slot 0 is not used
    FrameLayout otherwise_frame;
};

struct Set : Statement {
    Target* target;
    Expr* value;
};

struct SetBlock : Statement {
    Target* target;
    Expr* filter; // nullptr: the text as it is
    Body body;
    FrameLayout frame;
};

struct Parameter {
    std::string_view name;
    std::uint32_t at;
    Expr* fallback; // nullptr: undefined
    std::uint32_t slot;
};
// A macro, and the body of a call block, which is one without a name.
struct MacroBody {
    std::string_view name;
    std::span<Parameter> parameters;
    Body body;
    FrameLayout frame;
    // Slots of the special variables that the body uses.
    static constexpr std::uint32_t kUnused = 0xFFFFFFFF;
    std::uint32_t caller = kUnused, kwargs = kUnused, varargs = kUnused;
    bool uses_caller = false; // also as a parameter of that name
};
struct MacroStatement : Statement {
    MacroBody macro;
    Variable variable;
};
struct CallBlock : Statement {
    Expr* call; // kCall
    MacroBody macro;
};
struct Generation : Statement {
    MacroBody macro;
};

struct FilterBlock : Statement {
    Expr* filter;
    Body body;
    FrameLayout frame;
};

struct With : Statement {
    std::span<Target* const> targets;
    std::span<Expr* const> values; // of the frame around
    Body body;
    FrameLayout frame;
};

struct Program {
    Body body;
    FrameLayout frame;
    std::span<const std::string_view> names; // what kResolve slots look for
};

} // namespace lr::text::jinja
