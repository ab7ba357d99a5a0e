// SPDX-License-Identifier: Apache-2.0
//
// text/jinja/interpreter.h: runs a program once: statements write text, expressions give values.
#pragma once

#include "text/jinja/ast.h"
#include "text/values/loop.h"

namespace lr::text::jinja {

struct Frame {
    Frame* outer;
    Value* slots;
};

class Interpreter {
  public:
    // `variables[i]` is what program.names[i] means; missing where the render has no such variable.
    Interpreter(const Program& program, std::span<const Value> variables, Context& context)
        : program_(program), variables_(variables), context_(context) {}

    void run(Builder& out);

  private:
    enum class Flow { kNext, kBreak, kContinue };

    // Frames.
    Frame* open_frame(const FrameLayout& layout, Frame* outer);
    void start_frame(const FrameLayout& layout, Frame& frame);
    static Value& slot(Frame& frame, Variable variable) {
        Frame* found = &frame;
        for (std::uint32_t i = 0; i < variable.up; ++i)
            found = found->outer;
        return found->slots[variable.slot];
    }
    void assign(const Target& target, const Value& value, Frame& frame);

    // Statements.
    Flow run(Body body, Frame& frame, Builder& out);
    Flow run(const Statement& statement, Frame& frame, Builder& out);
    Flow run_if(const If& statement, Frame& frame, Builder& out);
    Flow run_for(const For& statement, const Value& items, Frame& outer, int depth, Builder& out);
    Flow run_set_block(const SetBlock& statement, Frame& frame);
    Flow run_filter_block(const FilterBlock& statement, Frame& frame, Builder& out);
    Flow run_with(const With& statement, Frame& frame, Builder& out);
    void run_call_block(const CallBlock& statement, Frame& frame, Builder& out);
    Iterator& selected(const For& statement, Iterator& items, Frame& outer);

    // Expressions.
    Value evaluate(const Expr& expr, Frame& frame);
    Value evaluate_name(const Expr& expr, Frame& frame);
    Value evaluate_items(const Expr& expr, Frame& frame);
    Value evaluate_dict(const Expr& expr, Frame& frame);
    Value evaluate_concat(const Expr& expr, Frame& frame);
    Value evaluate_compare(const Expr& expr, Frame& frame);
    Value evaluate_conditional(const Expr& expr, Frame& frame);
    Value evaluate_slice(const Expr& expr, Frame& frame);
    Value evaluate_call(const Expr& expr, Frame& frame, const Value* caller = nullptr);
    Value evaluate_filter(const Expr& expr, Frame& frame, const Value* text = nullptr);
    Value evaluate_test(const Expr& expr, Frame& frame);

    // Calls.
    struct ArgumentList {
        std::vector<Value> positional;
        std::vector<NamedValue> named;
    };
    ArgumentList evaluate_arguments(const Expr& expr, Frame& frame);
    void add_mapping(const Value& mapping, ArgumentList& arguments);
    Value call(const Value& callee, const Arguments& arguments);
    Value call_macro(const Macro& macro, const Arguments& arguments);
    void bind_macro(const Macro& macro, const Arguments& arguments, Frame& frame);
    Value call_loop(const Loop& loop, const Arguments& arguments);
    friend class ForTest;

    const Program& program_;
    std::span<const Value> variables_;
    Context& context_;
};

} // namespace lr::text::jinja
