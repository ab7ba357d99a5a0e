// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/quant_pattern.h"

#include <array>
#include <bitset>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace lr::checkpoint {
namespace {

using Chars = std::bitset<256>;

constexpr std::size_t kMaxStates = 20'000; // counted repetitions multiply
constexpr std::size_t kMaxSets = 2'000;    // of states, remembered at a time
constexpr int kMaxRepeat = 1'000;
constexpr int kMaxDepth = 50; // groups in groups

std::size_t byte(char c) {
    return static_cast<unsigned char>(c);
}

Chars one(char c) {
    return Chars().set(byte(c));
}

Chars range(char first, char last) {
    Chars chars;
    for (std::size_t c = byte(first); c <= byte(last); ++c)
        chars.set(c);
    return chars;
}

struct State {
    enum class Kind { kChars, kSplit, kStart, kEnd, kMatch };
    Kind kind = Kind::kMatch;
    int next = -1, other = -1; // other: kSplit
    Chars chars = {};
};

} // namespace

// Thompson's construction; the sets of states that a name leads to are made on the way and kept, so
// that the thousands of names of a model cost a table look-up a character.
class ModulePattern::Automaton {
  public:
    std::vector<State> states;
    int start = -1;
    bool whole = false; // a match ends with the name

    bool matches(std::string_view name) {
        if (initial_ == nullptr)
            initial_ = remember(closure({start}, true));
        Set* set = initial_;
        for (char c : name) {
            if (set->matched && !whole)
                return true;
            Set*& next = set->next[byte(c)];
            if (next == nullptr)
                next = remember(step(*set, c));
            set = next;
            if (set->states.empty() && !set->matched && !set->matched_at_end)
                return false;
        }
        return set->matched || set->matched_at_end;
    }

  private:
    struct Set {
        std::vector<int> states; // kChars alone
        bool matched = false, matched_at_end = false;
        std::array<Set*, 256> next{};
    };
    using Key = std::pair<std::vector<int>, int>;

    Set closure(std::vector<int> from, bool at_start) const {
        Set set;
        std::vector<bool> seen(2 * states.size());
        std::vector<std::pair<int, bool>> open; // state, reached through `$`
        for (int s : from)
            open.emplace_back(s, false);
        while (!open.empty()) {
            const auto [id, ended] = open.back();
            open.pop_back();
            const auto index = static_cast<std::size_t>(id);
            if (seen[2 * index + ended])
                continue;
            seen[2 * index + ended] = true;
            const State& state = states[index];
            switch (state.kind) {
            case State::Kind::kChars:
                if (!ended)
                    set.states.push_back(id);
                break;
            case State::Kind::kSplit:
                open.emplace_back(state.other, ended);
                open.emplace_back(state.next, ended);
                break;
            case State::Kind::kStart:
                if (at_start)
                    open.emplace_back(state.next, ended);
                break;
            case State::Kind::kEnd:
                open.emplace_back(state.next, true);
                break;
            case State::Kind::kMatch:
                (ended ? set.matched_at_end : set.matched) = true;
                break;
            }
        }
        return set;
    }

    Set step(const Set& set, char c) const {
        std::vector<int> next;
        for (int id : set.states)
            if (const State& state = states[static_cast<std::size_t>(id)]; state.chars[byte(c)])
                next.push_back(state.next);
        return closure(std::move(next), false);
    }

    // A caller holds at most the set that this returns: when the memory is full it starts anew.
    Set* remember(Set set) {
        if (sets_.size() >= kMaxSets)
            retire();
        Key key{set.states, 2 * set.matched + set.matched_at_end};
        auto& slot = sets_[std::move(key)];
        if (!slot)
            slot = std::make_unique<Set>(std::move(set));
        return slot.get();
    }

    // The set under way still stores a pointer when its successor is made: one generation is kept.
    void retire() {
        for (auto& [key, set] : sets_)
            set->next.fill(nullptr);
        retired_ = std::move(sets_);
        sets_.clear();
        initial_ = nullptr;
    }

    std::map<Key, std::unique_ptr<Set>> sets_, retired_;
    Set* initial_ = nullptr;
};

namespace {

// A part of the automaton under construction: `end` is the state whose `next` leads on.
struct Fragment {
    int start = -1, end = -1;
};

class Compiler {
  public:
    Compiler(std::string_view pattern, std::vector<State>& states)
        : text_(pattern), states_(states) {}

    Result<int> glob() {
        Fragment all = empty();
        while (at_ < text_.size()) {
            const char c = text_[at_++];
            Fragment part;
            if (c == '*') {
                part = repeat_any(chars(~Chars()));
            } else if (c == '?') {
                part = chars(~Chars());
            } else if (c == '[') {
                LR_TRY_ASSIGN(const Chars set, char_class('!'));
                part = chars(set);
            } else {
                part = chars(one(c));
            }
            all = join(all, part);
        }
        return finish(all);
    }

    Result<int> regex() {
        LR_TRY_ASSIGN(const Fragment all, alternatives(0));
        if (at_ != text_.size())
            return unsupported("a ')' without '('");
        return finish(all);
    }

  private:
    Failure unsupported(std::string_view what) const {
        return fail(Code::kUnsupported, "pattern \"{}\": {}", text_, what);
    }
    bool more() const { return at_ < text_.size(); }
    bool take(char c) {
        if (!more() || text_[at_] != c)
            return false;
        ++at_;
        return true;
    }

    int add(State state) {
        states_.push_back(state);
        return static_cast<int>(states_.size()) - 1;
    }
    State& at(int id) { return states_[static_cast<std::size_t>(id)]; }
    Fragment single(State state) {
        const int id = add(state);
        return {id, id};
    }
    // A split that goes one way only.
    Fragment empty() { return single({.kind = State::Kind::kSplit}); }
    Fragment chars(const Chars& set) { return single({.kind = State::Kind::kChars, .chars = set}); }
    void lead(int from, int to) {
        at(from).next = to;
        if (at(from).kind == State::Kind::kSplit && at(from).other < 0)
            at(from).other = to;
    }
    Fragment join(Fragment a, Fragment b) {
        lead(a.end, b.start);
        return {a.start, b.end};
    }
    Fragment either(Fragment a, Fragment b) {
        const Fragment out = empty();
        lead(a.end, out.start);
        lead(b.end, out.start);
        return {add({.kind = State::Kind::kSplit, .next = a.start, .other = b.start}), out.end};
    }
    Fragment optional(Fragment a) { return either(a, empty()); }
    Fragment repeat_any(Fragment a) {
        const int split = add({.kind = State::Kind::kSplit, .next = -1, .other = a.start});
        lead(a.end, split);
        const Fragment out = empty();
        at(split).next = out.start;
        return {split, out.end};
    }
    Result<int> finish(Fragment all) {
        lead(all.end, add({.kind = State::Kind::kMatch}));
        if (states_.size() > kMaxStates)
            return unsupported("too long");
        return all.start;
    }

    Result<Fragment> alternatives(int depth) {
        if (depth > kMaxDepth)
            return unsupported("groups are nested too deep");
        LR_TRY_ASSIGN(Fragment all, sequence(depth));
        while (take('|')) {
            LR_TRY_ASSIGN(const Fragment next, sequence(depth));
            all = either(all, next);
        }
        return all;
    }

    Result<Fragment> sequence(int depth) {
        Fragment all = empty();
        while (more() && text_[at_] != '|' && text_[at_] != ')') {
            LR_TRY_ASSIGN(const Fragment next, repeated(depth));
            all = join(all, next);
            if (states_.size() > kMaxStates)
                return unsupported("too long");
        }
        return all;
    }

    // An atom and what follows it: * + ? {m} {m,} {m,n}. A counted atom is read again for each
    // copy.
    Result<Fragment> repeated(int depth) {
        const std::size_t begin = at_;
        LR_TRY_ASSIGN(Fragment part, atom(depth));
        if (take('*')) {
            part = repeat_any(part);
        } else if (take('?')) {
            part = optional(part);
        } else if (take('+')) {
            LR_TRY_ASSIGN(const Fragment again, copy(begin, depth));
            part = join(part, repeat_any(again));
        } else if (more() && text_[at_] == '{') {
            LR_TRY_ASSIGN(part, counted(begin, depth));
        }
        take('?'); // lazy: the same names match
        if (more() && (text_[at_] == '*' || text_[at_] == '+'))
            return unsupported("two repetitions in a row");
        return part;
    }

    Result<Fragment> copy(std::size_t begin, int depth) {
        const std::size_t here = at_;
        at_ = begin;
        LR_TRY_ASSIGN(const Fragment part, atom(depth));
        at_ = here;
        return part;
    }

    Result<int> number() {
        int value = 0;
        const std::size_t begin = at_;
        while (more() && text_[at_] >= '0' && text_[at_] <= '9' && value <= kMaxRepeat)
            value = 10 * value + (text_[at_++] - '0');
        if (at_ == begin || value > kMaxRepeat)
            return unsupported("expected a number of repetitions below 1000");
        return value;
    }

    Result<Fragment> counted(std::size_t begin, int depth) {
        ++at_;
        LR_TRY_ASSIGN(const int least, number());
        int most = least;
        bool open = false;
        if (take(',')) {
            open = more() && text_[at_] == '}';
            if (!open) {
                LR_TRY_ASSIGN(most, number());
            }
        }
        if (!take('}') || most < least)
            return unsupported("expected {m}, {m,} or {m,n}");
        Fragment all = empty();
        for (int i = 0; i < most + (open ? 1 : 0); ++i) {
            LR_TRY_ASSIGN(Fragment part, copy(begin, depth));
            if (i >= least)
                part = open ? repeat_any(part) : optional(part);
            all = join(all, part);
            if (states_.size() > kMaxStates)
                return unsupported("too long");
        }
        return all;
    }

    Result<Fragment> atom(int depth) {
        const char c = text_[at_++];
        switch (c) {
        case '(':
            return group(depth);
        case '[': {
            LR_TRY_ASSIGN(const Chars set, char_class('^'));
            return chars(set);
        }
        case '.':
            return chars(~one('\n'));
        case '^':
            return single({.kind = State::Kind::kStart});
        case '$':
            return single({.kind = State::Kind::kEnd});
        case '\\': {
            LR_TRY_ASSIGN(const Chars set, escape());
            return chars(set);
        }
        case '*':
        case '+':
        case '?':
        case '{':
            return unsupported("a repetition of nothing");
        default:
            return chars(one(c));
        }
    }

    Result<Fragment> group(int depth) {
        if (take('?') && !take(':'))
            return unsupported("only (...) and (?:...) groups are known");
        LR_TRY_ASSIGN(const Fragment part, alternatives(depth + 1));
        if (!take(')'))
            return unsupported("a '(' without ')'");
        return part;
    }

    Result<Chars> escape() {
        if (!more())
            return unsupported("ends with a backslash");
        const Chars digits = range('0', '9');
        const Chars word = digits | range('a', 'z') | range('A', 'Z') | one('_');
        const Chars space = one(' ') | range('\t', '\r');
        const char c = text_[at_++];
        switch (c) {
        case 'd':
            return digits;
        case 'D':
            return ~digits;
        case 'w':
            return word;
        case 'W':
            return ~word;
        case 's':
            return space;
        case 'S':
            return ~space;
        case 'n':
            return one('\n');
        case 't':
            return one('\t');
        default:
            if (word[byte(c)])
                return unsupported("an escape that is not known");
            return one(c);
        }
    }

    // After '['; a ']' in the first place is itself.
    Result<Chars> char_class(char negation) {
        const bool negated = take(negation);
        Chars set;
        for (bool first = true; first || !take(']'); first = false) {
            if (!more())
                return unsupported("a '[' without ']'");
            const char c = text_[at_++];
            if (c == '\\' && negation == '^') {
                LR_TRY_ASSIGN(const Chars escaped, escape());
                set |= escaped;
            } else if (at_ + 1 < text_.size() && text_[at_] == '-' && text_[at_ + 1] != ']') {
                set |= range(c, text_[at_ + 1]);
                at_ += 2;
            } else {
                set |= one(c);
            }
        }
        return negated ? ~set : set;
    }

    std::string_view text_;
    std::vector<State>& states_;
    std::size_t at_ = 0;
};

} // namespace

ModulePattern::ModulePattern(std::unique_ptr<Automaton> automaton)
    : automaton_(std::move(automaton)) {}
ModulePattern::ModulePattern(ModulePattern&&) noexcept = default;
ModulePattern& ModulePattern::operator=(ModulePattern&&) noexcept = default;
ModulePattern::~ModulePattern() = default;

Result<ModulePattern> ModulePattern::glob(std::string_view pattern) {
    auto automaton = std::make_unique<Automaton>();
    LR_TRY_ASSIGN(automaton->start, Compiler(pattern, automaton->states).glob());
    automaton->whole = true;
    return ModulePattern(std::move(automaton));
}

Result<ModulePattern> ModulePattern::regex(std::string_view pattern) {
    auto automaton = std::make_unique<Automaton>();
    LR_TRY_ASSIGN(automaton->start, Compiler(pattern, automaton->states).regex());
    return ModulePattern(std::move(automaton));
}

bool ModulePattern::matches(std::string_view name) const {
    return automaton_->matches(name);
}

} // namespace lr::checkpoint
