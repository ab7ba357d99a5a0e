// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/interpreter.h"
#include "text/values/key_set.h"
#include "text/values/methods.h"
#include "text/values/repr.h"

#include <algorithm>

namespace lr::text::jinja {

Value Interpreter::evaluate(const Expr& expr, Frame& frame) {
    const Nesting nesting(context_);
    context_.step();
    switch (expr.kind) {
    case ExprKind::kConstant:
        return *expr.constant;
    case ExprKind::kName:
        return evaluate_name(expr, frame);
    case ExprKind::kTuple:
    case ExprKind::kList:
        return evaluate_items(expr, frame);
    case ExprKind::kDict:
        return evaluate_dict(expr, frame);
    case ExprKind::kNot:
        return Value::of(!truth(context_, evaluate(*expr.items[0], frame)));
    case ExprKind::kSign: {
        const Value operand = evaluate(*expr.items[0], frame);
        context_.at = expr.at;
        return signed_value(static_cast<Sign>(expr.op), operand);
    }
    case ExprKind::kArithmetic: {
        const Value left = evaluate(*expr.items[0], frame);
        const Value right = evaluate(*expr.items[1], frame);
        context_.at = expr.at;
        return arithmetic(context_, static_cast<Arithmetic>(expr.op), left, right);
    }
    case ExprKind::kAnd:
    case ExprKind::kOr: {
        const Value left = evaluate(*expr.items[0], frame);
        const bool decided = truth(context_, left) == (expr.kind == ExprKind::kOr);
        return decided ? left : evaluate(*expr.items[1], frame);
    }
    case ExprKind::kConcat:
        return evaluate_concat(expr, frame);
    case ExprKind::kCompare:
        return evaluate_compare(expr, frame);
    case ExprKind::kConditional:
        return evaluate_conditional(expr, frame);
    case ExprKind::kAttribute: {
        const Value object = evaluate(*expr.items[0], frame);
        context_.at = expr.at;
        return get_attribute(context_, object, expr.name);
    }
    case ExprKind::kItem: {
        const Value object = evaluate(*expr.items[0], frame);
        const Value key = evaluate(*expr.items[1], frame);
        context_.at = expr.at;
        return get_item(context_, object, key);
    }
    case ExprKind::kSlice:
        return evaluate_slice(expr, frame);
    case ExprKind::kCall:
        return evaluate_call(expr, frame);
    case ExprKind::kFilter:
        return evaluate_filter(expr, frame);
    case ExprKind::kTest:
        break;
    }
    return evaluate_test(expr, frame);
}

Value Interpreter::evaluate_name(const Expr& expr, Frame& frame) {
    const Value& value = slot(frame, expr.variable);
    return value.is(Kind::kMissing) ? new_undefined(context_, expr.name) : value;
}

Value Interpreter::evaluate_items(const Expr& expr, Frame& frame) {
    Value* items = context_.arena.make_array<Value>(expr.items.size());
    for (std::size_t i = 0; i < expr.items.size(); ++i)
        items[i] = evaluate(*expr.items[i], frame);
    const Sequence* sequence = context_.arena.make<Sequence>(items, expr.items.size(), false);
    return expr.kind == ExprKind::kList ? Value::list(sequence) : Value::tuple(sequence);
}

Value Interpreter::evaluate_dict(const Expr& expr, Frame& frame) {
    DictBuilder builder(context_);
    for (std::size_t i = 0; i < expr.items.size(); i += 2) {
        const Value key = evaluate(*expr.items[i], frame);
        const Value value = evaluate(*expr.items[i + 1], frame);
        context_.at = expr.items[i]->at;
        builder.set(key, value);
    }
    return builder.finish();
}

Value Interpreter::evaluate_concat(const Expr& expr, Frame& frame) {
    std::vector<Value> values;
    for (const Expr* item : expr.items)
        values.push_back(evaluate(*item, frame));
    context_.at = expr.at;
    Builder builder(context_);
    for (const Value& value : values)
        add_str(context_, builder, value);
    return Value::of(builder.finish());
}

// a < b < c is (a < b) and (b < c), with b evaluated once.
Value Interpreter::evaluate_compare(const Expr& expr, Frame& frame) {
    Value left = evaluate(*expr.items[0], frame);
    for (std::size_t i = 1; i < expr.items.size(); ++i) {
        const Value right = evaluate(*expr.items[i], frame);
        context_.at = expr.at;
        if (!compare(context_, expr.comparisons[i - 1], left, right))
            return Value::of(false);
        left = right;
    }
    return Value::of(true);
}

Value Interpreter::evaluate_conditional(const Expr& expr, Frame& frame) {
    if (truth(context_, evaluate(*expr.items[0], frame)))
        return evaluate(*expr.items[1], frame);
    if (expr.items.size() == 3)
        return evaluate(*expr.items[2], frame);
    return new_hint(context_, "the test of an inline if without an else is false");
}

Value Interpreter::evaluate_slice(const Expr& expr, Frame& frame) {
    const Value object = evaluate(*expr.items[0], frame);
    const Value start = evaluate(*expr.items[1], frame);
    const Value stop = evaluate(*expr.items[2], frame);
    const Value step = evaluate(*expr.items[3], frame);
    context_.at = expr.at;
    return get_slice(context_, object, start, stop, step);
}

// The arguments of a call, filter or test, behind items[0].
Interpreter::ArgumentList Interpreter::evaluate_arguments(const Expr& expr, Frame& frame) {
    ArgumentList arguments;
    for (const Expr* item : expr.items.subspan(1))
        arguments.positional.push_back(evaluate(*item, frame));
    for (const NamedExpr& named : expr.call->named)
        arguments.named.push_back({named.name, evaluate(*named.value, frame)});
    if (expr.call->sequence != nullptr) {
        const Value sequence = evaluate(*expr.call->sequence, frame);
        context_.at = expr.at;
        for (const Value& item : collect(context_, sequence))
            arguments.positional.push_back(item);
    }
    if (expr.call->mapping != nullptr) {
        const Value mapping = evaluate(*expr.call->mapping, frame);
        context_.at = expr.at;
        add_mapping(mapping, arguments);
    }
    context_.at = expr.at;
    return arguments;
}

void Interpreter::add_mapping(const Value& mapping, ArgumentList& arguments) {
    if (!mapping.is(Kind::kDict))
        throw_error("expected a dict behind '**', got a {}", type_name(mapping));
    context_.step(mapping.dict().size * (1 + arguments.named.size() / 16));
    const std::size_t given = arguments.named.size();
    for (const Entry& entry : mapping.dict().span()) {
        if (!entry.key.is_string())
            throw_error("expected keys that are str behind '**', got a {}", type_name(entry.key));
        const auto end = arguments.named.begin() + static_cast<std::ptrdiff_t>(given);
        if (std::any_of(arguments.named.begin(), end,
                        [&](const NamedValue& each) { return each.name == entry.key.view(); }))
            throw_error("argument '{}' is given twice", entry.key.view());
        arguments.named.push_back({entry.key.view(), entry.value, entry.key.outside()});
    }
}

Value Interpreter::evaluate_call(const Expr& expr, Frame& frame, const Value* caller) {
    const Value callee = evaluate(*expr.items[0], frame);
    ArgumentList arguments = evaluate_arguments(expr, frame);
    if (caller != nullptr)
        arguments.named.push_back({"caller", *caller});
    return call(callee, {arguments.positional, arguments.named});
}

Value Interpreter::evaluate_filter(const Expr& expr, Frame& frame, const Value* text) {
    // Of a chain behind a block the innermost filter gets the text.
    const Expr* input = expr.items[0];
    const Value value = input == nullptr                   ? *text
                        : input->kind == ExprKind::kFilter ? evaluate_filter(*input, frame, text)
                                                           : evaluate(*input, frame);
    const ArgumentList arguments = evaluate_arguments(expr, frame);
    if (expr.filter == nullptr)
        throw_error("there is no filter '{}'", expr.name);
    return expr.filter->apply(context_, value, {arguments.positional, arguments.named});
}

Value Interpreter::evaluate_test(const Expr& expr, Frame& frame) {
    const Value value = evaluate(*expr.items[0], frame);
    const ArgumentList arguments = evaluate_arguments(expr, frame);
    if (expr.test == nullptr)
        throw_error("there is no test '{}'", expr.name);
    return Value::of(expr.test->holds(context_, value, {arguments.positional, arguments.named}));
}

Value Interpreter::call(const Value& callee, const Arguments& arguments) {
    switch (callee.kind()) {
    case Kind::kMacro:
        return call_macro(callee.as<Macro>(), arguments);
    case Kind::kFunction:
        return callee.as<Function>().call(context_, arguments);
    case Kind::kMethod:
        return call_method(context_, callee.as<Method>(), arguments);
    case Kind::kLoop:
        return call_loop(callee.as<Loop>(), arguments);
    case Kind::kJoiner: {
        if (!arguments.positional.empty() || !arguments.named.empty())
            throw_error("joiner: expected no arguments");
        Joiner& joiner = callee.as_mutable<Joiner>();
        return std::exchange(joiner.used, true) ? joiner.separator : new_string(context_, "");
    }
    case Kind::kUndefined:
        throw_undefined(callee);
    default:
        throw_error("expected something to call, got a {}", type_name(callee));
    }
}

Value Interpreter::call_macro(const Macro& macro, const Arguments& arguments) {
    const Nesting nesting(context_);
    Frame* frame = context_.arena.make<Frame>(
        macro.outer, context_.arena.make_array<Value>(macro.body.frame.slots.size()));
    bind_macro(macro, arguments, *frame);
    start_frame(macro.body.frame, *frame);
    for (const Parameter& parameter : macro.body.parameters) {
        Value& value = frame->slots[parameter.slot];
        if (!value.is(Kind::kMissing))
            continue;
        // Evaluated in the macro's frame, where earlier parameters have their values.
        const Value fallback = parameter.fallback == nullptr
                                   ? new_undefined(context_, parameter.name)
                                   : evaluate(*parameter.fallback, *frame);
        frame->slots[parameter.slot] = fallback;
    }
    Builder out(context_);
    run(macro.body.body, *frame, out);
    return Value::of(out.finish());
}

void Interpreter::bind_macro(const Macro& macro, const Arguments& arguments, Frame& frame) {
    const MacroBody& body = macro.body;
    const std::size_t count = std::min(arguments.positional.size(), body.parameters.size());
    for (std::size_t i = 0; i < count; ++i)
        frame.slots[body.parameters[i].slot] = arguments.positional[i];
    if (body.caller != MacroBody::kUnused)
        frame.slots[body.caller] = new_hint(context_, "no caller is defined");
    DictBuilder rest(context_);
    for (const NamedValue& named : arguments.named) {
        const auto parameter = std::find_if(
            body.parameters.begin() + static_cast<std::ptrdiff_t>(count), body.parameters.end(),
            [&](const Parameter& each) { return each.name == named.name; });
        if (parameter != body.parameters.end())
            frame.slots[parameter->slot] = named.value;
        else if (named.name == "caller" && body.caller != MacroBody::kUnused)
            frame.slots[body.caller] =
                named.value.is(Kind::kNone) ? frame.slots[body.caller] : named.value;
        else if (body.kwargs != MacroBody::kUnused)
            rest.set(new_string(context_, named.name, named.outside), named.value);
        else
            throw_error("macro '{}': unexpected argument '{}'", body.name, named.name);
    }
    if (body.kwargs != MacroBody::kUnused)
        frame.slots[body.kwargs] = rest.finish();
    if (body.varargs != MacroBody::kUnused)
        frame.slots[body.varargs] = new_tuple(context_, arguments.positional.subspan(count));
    else if (arguments.positional.size() > count)
        throw_error("macro '{}': expected at most {} arguments, got {}", body.name, count,
                    arguments.positional.size());
}

Value Interpreter::call_loop(const Loop& loop, const Arguments& arguments) {
    if (arguments.positional.size() != 1 || !arguments.named.empty())
        throw_error("loop: expected one argument, what to go through");
    if (loop.recursive == nullptr)
        throw_error("loop: expected 'recursive' behind the for of a loop that is called");
    const Nesting nesting(context_);
    Builder out(context_);
    run_for(*loop.recursive, arguments.positional[0], *loop.outer, loop.depth0 + 1, out);
    return Value::of(out.finish());
}

} // namespace lr::text::jinja
