// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/scopes.h"

#include "text/jinja/lexer.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

namespace lr::text::jinja {

namespace {

// Every name an expression reads, in jinja2's order.
template <typename F> void for_each_name(const Expr* expr, const F& f) {
    if (expr == nullptr)
        return;
    if (expr->kind == ExprKind::kName)
        f(*expr);
    for (const Expr* item : expr->items)
        for_each_name(item, f);
    if (expr->call == nullptr)
        return;
    for (const NamedExpr& named : expr->call->named)
        for_each_name(named.value, f);
    for_each_name(expr->call->sequence, f);
    for_each_name(expr->call->mapping, f);
}

// Which of the names caller, kwargs and varargs the body of a macro reads before it assigns to
// them: jinja2's way to tell whether the macro takes such arguments.
class SpecialNames {
  public:
    explicit SpecialNames(Body body) { visit(body); }
    bool has(std::string_view name) const { return is_in(found_, name); }

  private:
    using Names = std::vector<std::string_view>;
    static bool is_in(const Names& names, std::string_view name) {
        return std::find(names.begin(), names.end(), name) != names.end();
    }

    void read(const Expr* expr) {
        for_each_name(expr, [&](const Expr& name) {
            if (is_in(open_, name.name))
                found_.push_back(name.name);
        });
    }
    void assign(std::string_view name) { std::erase(open_, name); }
    void assign(const Target& target) {
        if (target.kind == Target::Kind::kName)
            assign(target.name);
        for (const Target* item : target.items)
            assign(*item);
    }
    void visit(const MacroBody& macro) {
        for (const Parameter& parameter : macro.parameters)
            assign(parameter.name);
        for (const Parameter& parameter : macro.parameters)
            read(parameter.fallback);
        visit(macro.body);
    }
    void visit(Body body) {
        for (const Statement* statement : body)
            visit(*statement);
    }
    void visit(const Statement& statement);

    Names open_{"caller", "kwargs", "varargs"};
    Names found_;
};

void SpecialNames::visit(const Statement& statement) {
    switch (statement.kind) {
    case StatementKind::kOutput:
        for (const Expr* item : static_cast<const Output&>(statement).items)
            read(item);
        return;
    case StatementKind::kIf: {
        const auto& made = static_cast<const If&>(statement);
        for (const Branch& branch : made.branches) {
            read(branch.test);
            visit(branch.body);
        }
        return visit(made.otherwise);
    }
    case StatementKind::kFor: {
        const auto& made = static_cast<const For&>(statement);
        assign(*made.target);
        read(made.items);
        visit(made.body);
        visit(made.otherwise);
        return read(made.test);
    }
    case StatementKind::kSet:
        assign(*static_cast<const Set&>(statement).target);
        return read(static_cast<const Set&>(statement).value);
    case StatementKind::kSetBlock:
        assign(*static_cast<const SetBlock&>(statement).target);
        read(static_cast<const SetBlock&>(statement).filter);
        return visit(static_cast<const SetBlock&>(statement).body);
    case StatementKind::kMacro:
        return visit(static_cast<const MacroStatement&>(statement).macro);
    case StatementKind::kCallBlock:
        read(static_cast<const CallBlock&>(statement).call);
        return visit(static_cast<const CallBlock&>(statement).macro);
    case StatementKind::kGeneration:
        return visit(static_cast<const Generation&>(statement).macro);
    case StatementKind::kFilterBlock:
        visit(static_cast<const FilterBlock&>(statement).body);
        return read(static_cast<const FilterBlock&>(statement).filter);
    case StatementKind::kWith: {
        const auto& made = static_cast<const With&>(statement);
        for (const Target* target : made.targets)
            assign(*target);
        for (const Expr* value : made.values)
            read(value);
        return visit(made.body);
    }
    case StatementKind::kBreak:
    case StatementKind::kContinue:
        return;
    }
}

// The names of one frame. First all statements of the frame are noted, in order (note_*); then
// names are looked up (find).
class Scope {
  public:
    Scope(Scope* outer, std::map<std::string_view, std::uint32_t>& names)
        : outer_(outer), names_(names) {}

    std::uint32_t note_parameter(std::string_view name) {
        Entry& entry = entry_of(name);
        entry = {true, true, {SlotStart::Kind::kParameter}};
        return slots_.at(name);
    }

    void note_read(std::string_view name, std::uint32_t at) {
        if (find(name))
            return;
        if (name == "self" || name == "lipsum")
            throw TemplateError{Code::kUnsupported,
                                fmt::format("the variable '{}' is not supported", name), false, at};
        Entry& entry = entry_of(name);
        entry.known = true;
        entry.start = resolve(name);
    }

    void note_assignment(std::string_view name) {
        const std::optional<Variable> around = find_outside(name);
        Entry& entry = entry_of(name);
        entry.assigned = true;
        if (entry.known)
            return;
        entry.known = true;
        entry.start = around ? SlotStart{SlotStart::Kind::kAlias, 0, *around} : SlotStart{};
    }

    // Each of `branches` notes what one branch does, of which at most one runs.
    template <typename... Branches> void note_branches(Branches... branches) {
        const std::vector<Entry> before = entries_;
        std::vector<Entry> merged = before;
        const auto merge = [&](const auto& branch) {
            entries_ = before;
            branch();
            merged.resize(std::max(merged.size(), entries_.size()));
            for (std::size_t i = 0; i < entries_.size(); ++i) {
                if (entries_[i].known)
                    merged[i].start = entries_[i].start;
                merged[i].known |= entries_[i].known;
                merged[i].assigned |= entries_[i].assigned;
            }
        };
        (merge(branches), ...);
        entries_ = std::move(merged);
        for (const auto& [name, slot] : slots_) {
            const bool was_assigned = slot < before.size() && before[slot].assigned;
            if (slot >= entries_.size() || !entries_[slot].assigned || was_assigned)
                continue;
            // Where no branch assigns, the name must still have its value from outside.
            const std::optional<Variable> around = find_outside(name);
            entries_[slot].start =
                around ? SlotStart{SlotStart::Kind::kAlias, 0, *around} : resolve(name);
        }
    }

    std::optional<Variable> find(std::string_view name) const {
        const auto slot = slots_.find(name);
        if (slot != slots_.end() && slot->second < entries_.size() && entries_[slot->second].known)
            return Variable{0, slot->second};
        return find_outside(name);
    }

    FrameLayout layout(Arena& arena) const {
        SlotStart* starts = arena.make_array<SlotStart>(entries_.size());
        for (std::size_t i = 0; i < entries_.size(); ++i)
            starts[i] = entries_[i].start;
        return {{starts, entries_.size()}};
    }

  private:
    struct Entry {
        bool known = false;    // has been met
        bool assigned = false; // or is a parameter
        SlotStart start;
    };

    std::optional<Variable> find_outside(std::string_view name) const {
        std::optional<Variable> found = outer_ == nullptr ? std::nullopt : outer_->find(name);
        if (found)
            ++found->up;
        return found;
    }

    Entry& entry_of(std::string_view name) {
        const auto slot =
            slots_.emplace(name, static_cast<std::uint32_t>(slots_.size())).first->second;
        entries_.resize(std::max<std::size_t>(entries_.size(), slot + 1));
        return entries_[slot];
    }

    SlotStart resolve(std::string_view name) {
        const auto index = static_cast<std::uint32_t>(names_.size());
        return {SlotStart::Kind::kResolve, names_.emplace(name, index).first->second, {}};
    }

    Scope* outer_;
    std::map<std::string_view, std::uint32_t>& names_; // of the whole template
    std::map<std::string_view, std::uint32_t> slots_;  // a name keeps its slot in all branches
    std::vector<Entry> entries_;                       // by slot
};

class Resolver {
  public:
    explicit Resolver(Arena& arena) : arena_(arena) {}

    Program run(Body body) {
        Scope scope(nullptr, names_);
        note(body, scope);
        Place place{scope};
        resolve(body, place);
        std::string_view* names = arena_.make_array<std::string_view>(names_.size());
        for (const auto& [name, index] : names_)
            names[index] = name;
        return {body, scope.layout(arena_), {names, names_.size()}};
    }

  private:
    // Where a statement stands.
    struct Place {
        Scope& scope;
        bool in_loop = false;   // break and continue mean something
        bool soft = false;      // an unknown filter is an error only when it runs
        bool below_for = false; // `loop` may not be assigned to
    };

    // First pass over one frame.
    void note(const Expr* expr, Scope& scope) {
        for_each_name(expr, [&](const Expr& name) { scope.note_read(name.name, name.at); });
    }
    void note(const Target& target, Scope& scope, bool parameter = false) {
        if (target.kind == Target::Kind::kAttribute)
            scope.note_read(target.name, target.at);
        else if (target.kind == Target::Kind::kName && parameter)
            scope.note_parameter(target.name);
        else if (target.kind == Target::Kind::kName)
            scope.note_assignment(target.name);
        for (const Target* item : target.items)
            note(*item, scope, parameter);
    }
    void note(Body body, Scope& scope) {
        for (const Statement* statement : body)
            note(*statement, scope);
    }
    void note(const Statement& statement, Scope& scope);
    void note_if(const If& made, std::size_t first, Scope& scope);

    // Second pass.
    void resolve(Expr* expr, const Place& place);
    void resolve(Target& target, const Place& place, bool parameter = false);
    void resolve(Body body, const Place& place) {
        for (Statement* statement : body)
            resolve(*statement, place);
    }
    void resolve(Statement& statement, const Place& place);
    void resolve(If& made, const Place& place);
    void resolve(For& made, const Place& place);
    FrameLayout resolve_captured(Body body, Expr* filter, const Place& place);
    void resolve(With& made, const Place& place);
    void resolve(MacroBody& macro, const Place& place);
    Target* copy(const Target& target);

    Arena& arena_;
    std::map<std::string_view, std::uint32_t> names_;
};

void Resolver::note(const Statement& statement, Scope& scope) {
    switch (statement.kind) {
    case StatementKind::kOutput:
        for (const Expr* item : static_cast<const Output&>(statement).items)
            note(item, scope);
        return;
    case StatementKind::kIf:
        return note_if(static_cast<const If&>(statement), 0, scope);
    case StatementKind::kFor:
        return note(static_cast<const For&>(statement).items, scope);
    case StatementKind::kSet:
        note(static_cast<const Set&>(statement).value, scope);
        return note(*static_cast<const Set&>(statement).target, scope);
    case StatementKind::kSetBlock:
        return note(*static_cast<const SetBlock&>(statement).target, scope);
    case StatementKind::kMacro:
        return scope.note_assignment(static_cast<const MacroStatement&>(statement).macro.name);
    case StatementKind::kCallBlock:
        return note(static_cast<const CallBlock&>(statement).call, scope);
    case StatementKind::kFilterBlock:
        return note(static_cast<const FilterBlock&>(statement).filter, scope);
    case StatementKind::kWith:
        for (const Expr* value : static_cast<const With&>(statement).values)
            note(value, scope);
        return;
    case StatementKind::kGeneration:
    case StatementKind::kBreak:
    case StatementKind::kContinue:
        return;
    }
}

// An `elif` is an if without an else that stands in the second of three branches.
void Resolver::note_if(const If& made, std::size_t first, Scope& scope) {
    note(made.branches[first].test, scope);
    scope.note_branches([&] { note(made.branches[first].body, scope); },
                        [&] {
                            for (std::size_t i = first + 1; i < made.branches.size(); ++i) {
                                note(made.branches[i].test, scope);
                                scope.note_branches([&] { note(made.branches[i].body, scope); });
                            }
                        },
                        [&] { note(made.otherwise, scope); });
}

void Resolver::resolve(Expr* expr, const Place& place) {
    if (expr == nullptr)
        return;
    Place inside = place;
    inside.soft |= expr->kind == ExprKind::kConditional;
    if (expr->kind == ExprKind::kName)
        expr->variable = *place.scope.find(expr->name);
    if (expr->kind == ExprKind::kFilter && expr->filter == nullptr && !place.soft)
        throw_syntax(expr->at, "there is no filter '{}'", expr->name);
    if (expr->kind == ExprKind::kTest && expr->test == nullptr && !place.soft)
        throw_syntax(expr->at, "there is no test '{}'", expr->name);
    for (Expr* item : expr->items)
        resolve(item, inside);
    if (expr->call == nullptr)
        return;
    for (const NamedExpr& named : expr->call->named)
        resolve(named.value, inside);
    resolve(expr->call->sequence, inside);
    resolve(expr->call->mapping, inside);
}

void Resolver::resolve(Target& target, const Place& place, bool parameter) {
    if (target.kind == Target::Kind::kName && target.name == "loop" && place.below_for &&
        !parameter)
        throw_syntax(target.at, "the variable 'loop' cannot be assigned to within a for");
    if (target.kind != Target::Kind::kTuple)
        target.variable = *place.scope.find(target.name);
    for (Target* item : target.items)
        resolve(*item, place, parameter);
}

void Resolver::resolve(Statement& statement, const Place& place) {
    switch (statement.kind) {
    case StatementKind::kOutput:
        for (Expr* item : static_cast<Output&>(statement).items)
            resolve(item, place);
        return;
    case StatementKind::kIf:
        return resolve(static_cast<If&>(statement), place);
    case StatementKind::kFor:
        return resolve(static_cast<For&>(statement), place);
    case StatementKind::kSet:
        resolve(*static_cast<Set&>(statement).target, place);
        return resolve(static_cast<Set&>(statement).value, place);
    case StatementKind::kSetBlock: {
        auto& made = static_cast<SetBlock&>(statement);
        made.frame = resolve_captured(made.body, made.filter, place);
        return resolve(*made.target, place);
    }
    case StatementKind::kMacro: {
        auto& made = static_cast<MacroStatement&>(statement);
        made.variable = *place.scope.find(made.macro.name);
        return resolve(made.macro, place);
    }
    case StatementKind::kCallBlock:
        resolve(static_cast<CallBlock&>(statement).macro, place);
        return resolve(static_cast<CallBlock&>(statement).call, place);
    case StatementKind::kFilterBlock: {
        auto& made = static_cast<FilterBlock&>(statement);
        made.frame = resolve_captured(made.body, made.filter, place);
        return;
    }
    case StatementKind::kWith:
        return resolve(static_cast<With&>(statement), place);
    case StatementKind::kGeneration:
        return resolve(static_cast<Generation&>(statement).macro, place);
    case StatementKind::kBreak:
    case StatementKind::kContinue:
        if (!place.in_loop)
            throw_syntax(statement.at, "expected break and continue only within a for");
        return;
    }
}

void Resolver::resolve(If& made, const Place& place) {
    Place inside = place;
    inside.soft = true;
    for (const Branch& branch : made.branches) {
        resolve(branch.test, inside);
        resolve(branch.body, inside);
    }
    resolve(made.otherwise, inside);
}

Target* Resolver::copy(const Target& target) {
    Target* made = arena_.make<Target>(target);
    Target** items = arena_.make_array<Target*>(target.items.size());
    for (std::size_t i = 0; i < target.items.size(); ++i)
        items[i] = copy(*target.items[i]);
    made->items = {items, target.items.size()};
    return made;
}

void Resolver::resolve(For& made, const Place& place) {
    resolve(made.items, place);
    if (made.test != nullptr) {
        Scope scope(&place.scope, names_);
        scope.note_parameter(""); // so that the target has the same slots as in the body
        made.test_target = copy(*made.target);
        note(*made.test_target, scope, true);
        note(made.test, scope);
        const Place inside{scope, false, false, true};
        resolve(*made.test_target, inside);
        resolve(made.test, inside);
        made.test_frame = scope.layout(arena_);
    }
    {
        Scope scope(&place.scope, names_);
        scope.note_parameter("loop");
        note(*made.target, scope, true);
        note(made.body, scope);
        const Place inside{scope, true, false, true};
        resolve(*made.target, inside);
        resolve(made.body, inside);
        made.frame = scope.layout(arena_);
    }
    Scope scope(&place.scope, names_);
    note(made.otherwise, scope);
    // The body of a recursive for is a function of its own: a loop around it cannot be left.
    resolve(made.otherwise, {scope, place.in_loop && !made.recursive, false, true});
    made.otherwise_frame = scope.layout(arena_);
}

// A block whose text goes through a filter (or, without one, is kept).
FrameLayout Resolver::resolve_captured(Body body, Expr* filter, const Place& place) {
    Scope scope(&place.scope, names_);
    note(body, scope);
    note(filter, scope);
    const Place inside{scope, place.in_loop, false, place.below_for};
    resolve(body, inside);
    resolve(filter, inside);
    return scope.layout(arena_);
}

void Resolver::resolve(With& made, const Place& place) {
    for (Expr* value : made.values)
        resolve(value, place);
    Scope scope(&place.scope, names_);
    for (const Target* target : made.targets)
        note(*target, scope, true);
    note(made.body, scope);
    const Place inside{scope, place.in_loop, false, place.below_for};
    for (Target* target : made.targets)
        resolve(*target, inside, true);
    resolve(made.body, inside);
    made.frame = scope.layout(arena_);
}

void Resolver::resolve(MacroBody& macro, const Place& place) {
    Scope scope(&place.scope, names_);
    const SpecialNames special(macro.body);
    const auto is_parameter = [&](std::string_view name) {
        return std::any_of(macro.parameters.begin(), macro.parameters.end(),
                           [&](const Parameter& parameter) { return parameter.name == name; });
    };
    for (Parameter& parameter : macro.parameters) {
        parameter.slot = scope.note_parameter(parameter.name);
        if (parameter.name == "caller" && parameter.fallback == nullptr && special.has("caller"))
            throw_syntax(parameter.at, "expected a default for the parameter 'caller', got none");
    }
    macro.uses_caller = special.has("caller");
    if (macro.uses_caller && !is_parameter("caller"))
        macro.caller = scope.note_parameter("caller");
    if (special.has("kwargs") && !is_parameter("kwargs"))
        macro.kwargs = scope.note_parameter("kwargs");
    if (special.has("varargs") && !is_parameter("varargs"))
        macro.varargs = scope.note_parameter("varargs");
    for (const Parameter& parameter : macro.parameters)
        note(parameter.fallback, scope);
    note(macro.body, scope);
    const Place inside{scope, false, false, place.below_for};
    for (const Parameter& parameter : macro.parameters)
        resolve(parameter.fallback, inside);
    resolve(macro.body, inside);
    macro.frame = scope.layout(arena_);
}

} // namespace

Program resolve_scopes(Body body, Arena& arena) {
    return Resolver(arena).run(body);
}

} // namespace lr::text::jinja
