// SPDX-License-Identifier: Apache-2.0
//
// text/values/context.h: what one render may use, and how much of it is left. Every operation on
// values takes the context: it gives memory, counts work, and knows how deep things are nested.
#pragma once

#include "text/values/arena.h"
#include "text/values/error.h"

#include <cstdint>
#include <ctime>

namespace lr::text::jinja {

// Generous for any real template, small enough that a hostile one ends within about a second.
struct Limits {
    std::size_t memory_bytes = std::size_t{128} << 20; // all values of a render, none freed before
    std::size_t output_bytes = std::size_t{32} << 20;
    std::uint64_t steps = 20'000'000; // nodes evaluated, items drawn, kilobytes searched
    int depth = 1000;                 // nested evaluations: about 1 KiB of stack each
};

class Context {
  public:
    Context(const Limits& limits, std::time_t now)
        : arena(limits.memory_bytes), now(now), steps_left_(limits.steps), limits_(limits) {}
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;

    void step(std::uint64_t count = 1) {
        if (count > steps_left_)
            throw_limit("expected at most {} steps, got more", limits_.steps);
        steps_left_ -= count;
    }
    // A pass over so many bytes that makes no new value.
    void scan(std::size_t bytes) { step(bytes / 1024); }

    const Limits& limits() const { return limits_; }

    Arena arena;
    const std::time_t now;
    std::uint32_t at = 0; // byte of the source where the operation under way stands

  private:
    friend class Nesting;
    std::uint64_t steps_left_;
    int depth_ = 0;
    const Limits limits_;
};

// Stands on the stack of every function that calls itself by way of a template or a value.
class Nesting {
  public:
    explicit Nesting(Context& context) : context_(context) {
        if (context.depth_ >= context.limits_.depth)
            throw_limit("expected at most {} nested evaluations, got more", context.limits_.depth);
        ++context.depth_;
    }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;
    ~Nesting() { --context_.depth_; }

  private:
    Context& context_;
};

} // namespace lr::text::jinja
