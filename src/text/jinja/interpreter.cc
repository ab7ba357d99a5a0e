// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/interpreter.h"

#include "text/values/repr.h"

namespace lr::text::jinja {

// The items of a for whose test holds, tested when they are drawn.
class ForTest final : public Iterator {
  public:
    ForTest(Interpreter& interpreter, const For& statement, Iterator& items, Frame& frame)
        : interpreter_(interpreter), statement_(statement), items_(items), frame_(frame) {}

    bool next(Context& context, Value& item) override {
        const Nesting nesting(context);
        Value candidate;
        while (items_.next(context, candidate)) {
            interpreter_.assign(*statement_.test_target, candidate, frame_);
            if (truth(context, interpreter_.evaluate(*statement_.test, frame_))) {
                item = candidate;
                return true;
            }
        }
        return false;
    }

  private:
    Interpreter& interpreter_;
    const For& statement_;
    Iterator& items_;
    Frame& frame_;
};

void Interpreter::run(Builder& out) {
    Frame* frame = open_frame(program_.frame, nullptr);
    run(program_.body, *frame, out);
}

Frame* Interpreter::open_frame(const FrameLayout& layout, Frame* outer) {
    Frame* frame =
        context_.arena.make<Frame>(outer, context_.arena.make_array<Value>(layout.slots.size()));
    start_frame(layout, *frame);
    return frame;
}

// Gives every slot but the parameters its first value.
void Interpreter::start_frame(const FrameLayout& layout, Frame& frame) {
    for (std::size_t i = 0; i < layout.slots.size(); ++i) {
        const SlotStart& start = layout.slots[i];
        switch (start.kind) {
        case SlotStart::Kind::kParameter:
            break;
        case SlotStart::Kind::kUndefined:
            frame.slots[i] = Value();
            break;
        case SlotStart::Kind::kResolve:
            frame.slots[i] = variables_[start.name];
            break;
        case SlotStart::Kind::kAlias:
            frame.slots[i] = slot(frame, start.outer);
            break;
        }
    }
}

void Interpreter::assign(const Target& target, const Value& value, Frame& frame) {
    switch (target.kind) {
    case Target::Kind::kName:
        slot(frame, target.variable) = value;
        return;
    case Target::Kind::kAttribute: {
        const Value& object = slot(frame, target.variable);
        context_.at = target.at;
        if (!object.is(Kind::kNamespace))
            throw_error("expected a namespace to set '{}' of, got another value", target.attribute);
        return set(context_, object.as_mutable<Namespace>(), target.attribute, value);
    }
    case Target::Kind::kTuple:
        break;
    }
    context_.at = target.at;
    Iterator& items = iterate(context_, value);
    Value item;
    for (const Target* part : target.items) {
        if (!items.next(context_, item))
            throw_error("expected {} values to assign, got fewer", target.items.size());
        assign(*part, item, frame);
    }
    if (items.next(context_, item))
        throw_error("expected {} values to assign, got more", target.items.size());
}

Interpreter::Flow Interpreter::run(Body body, Frame& frame, Builder& out) {
    for (const Statement* statement : body) {
        const Flow flow = run(*statement, frame, out);
        if (flow != Flow::kNext)
            return flow;
    }
    return Flow::kNext;
}

Interpreter::Flow Interpreter::run(const Statement& statement, Frame& frame, Builder& out) {
    const Nesting nesting(context_);
    context_.step();
    switch (statement.kind) {
    case StatementKind::kOutput:
        for (const Expr* item : static_cast<const Output&>(statement).items) {
            if (item->kind == ExprKind::kConstant && item->constant->is_string()) {
                out.add(item->constant->string());
                continue;
            }
            const Value value = evaluate(*item, frame);
            context_.at = item->at;
            add_str(context_, out, value);
        }
        return Flow::kNext;
    case StatementKind::kIf:
        return run_if(static_cast<const If&>(statement), frame, out);
    case StatementKind::kFor: {
        const auto& made = static_cast<const For&>(statement);
        return run_for(made, evaluate(*made.items, frame), frame, 0, out);
    }
    case StatementKind::kSet: {
        const auto& made = static_cast<const Set&>(statement);
        assign(*made.target, evaluate(*made.value, frame), frame);
        return Flow::kNext;
    }
    case StatementKind::kSetBlock:
        return run_set_block(static_cast<const SetBlock&>(statement), frame);
    case StatementKind::kMacro: {
        const auto& made = static_cast<const MacroStatement&>(statement);
        slot(frame, made.variable) =
            Value::of(context_.arena.make<Macro>(made.macro, made.macro.name, &frame));
        return Flow::kNext;
    }
    case StatementKind::kCallBlock:
        run_call_block(static_cast<const CallBlock&>(statement), frame, out);
        return Flow::kNext;
    case StatementKind::kFilterBlock:
        return run_filter_block(static_cast<const FilterBlock&>(statement), frame, out);
    case StatementKind::kWith:
        return run_with(static_cast<const With&>(statement), frame, out);
    case StatementKind::kGeneration: {
        const Macro macro{static_cast<const Generation&>(statement).macro, {}, &frame};
        out.add(call_macro(macro, {}).string());
        return Flow::kNext;
    }
    case StatementKind::kBreak:
        return Flow::kBreak;
    case StatementKind::kContinue:
        break;
    }
    return Flow::kContinue;
}

Interpreter::Flow Interpreter::run_if(const If& statement, Frame& frame, Builder& out) {
    for (const Branch& branch : statement.branches)
        if (truth(context_, evaluate(*branch.test, frame)))
            return run(branch.body, frame, out);
    return run(statement.otherwise, frame, out);
}

Iterator& Interpreter::selected(const For& statement, Iterator& items, Frame& outer) {
    if (statement.test == nullptr)
        return items;
    Frame* frame = open_frame(statement.test_frame, &outer);
    return *context_.arena.make<ForTest>(*this, statement, items, *frame);
}

Interpreter::Flow Interpreter::run_for(const For& statement, const Value& items, Frame& outer,
                                       int depth, Builder& out) {
    context_.at = statement.items->at;
    Iterator& all = iterate(context_, items);
    Loop* loop = context_.arena.make<Loop>(&selected(statement, all, outer));
    if (statement.test == nullptr && !items.is(Kind::kIterator))
        loop->known_length = length(context_, items);
    loop->recursive = statement.recursive ? &statement : nullptr;
    loop->outer = &outer;
    loop->depth0 = depth;
    Frame* frame = context_.arena.make<Frame>(
        &outer, context_.arena.make_array<Value>(statement.frame.slots.size()));
    bool completed = false; // some run of the body came to its end
    for (;;) {
        context_.at = statement.at;
        if (!loop->advance(context_))
            break;
        frame->slots[0] = Value::of(loop);
        assign(*statement.target, loop->current, *frame);
        start_frame(statement.frame, *frame);
        const Flow flow = run(statement.body, *frame, out);
        completed |= flow == Flow::kNext;
        if (flow == Flow::kBreak)
            break;
    }
    // jinja2 runs the else also where every run was cut short by break or continue.
    if (completed || statement.otherwise.empty())
        return Flow::kNext;
    return run(statement.otherwise, *open_frame(statement.otherwise_frame, &outer), out);
}

Interpreter::Flow Interpreter::run_set_block(const SetBlock& statement, Frame& frame) {
    Frame* inner = open_frame(statement.frame, &frame);
    Builder text(context_);
    const Flow flow = run(statement.body, *inner, text);
    if (flow != Flow::kNext)
        return flow;
    Value value = Value::of(text.finish());
    if (statement.filter != nullptr)
        value = evaluate_filter(*statement.filter, *inner, &value);
    assign(*statement.target, value, frame);
    return Flow::kNext;
}

Interpreter::Flow Interpreter::run_filter_block(const FilterBlock& statement, Frame& frame,
                                                Builder& out) {
    Frame* inner = open_frame(statement.frame, &frame);
    Builder text(context_);
    const Flow flow = run(statement.body, *inner, text);
    if (flow != Flow::kNext)
        return flow;
    const Value written = Value::of(text.finish());
    add_str(context_, out, evaluate_filter(*statement.filter, *inner, &written));
    return Flow::kNext;
}

Interpreter::Flow Interpreter::run_with(const With& statement, Frame& frame, Builder& out) {
    Frame* inner = open_frame(statement.frame, &frame);
    for (std::size_t i = 0; i < statement.targets.size(); ++i)
        assign(*statement.targets[i], evaluate(*statement.values[i], frame), *inner);
    return run(statement.body, *inner, out);
}

void Interpreter::run_call_block(const CallBlock& statement, Frame& frame, Builder& out) {
    const Value caller =
        Value::of(context_.arena.make<Macro>(statement.macro, std::string_view(), &frame));
    const Value result = evaluate_call(*statement.call, frame, &caller);
    context_.at = statement.at;
    add_str(context_, out, result);
}

} // namespace lr::text::jinja
