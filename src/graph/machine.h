// SPDX-License-Identifier: Apache-2.0
//
// graph/machine.h: what a machine can do at best, and the least time that work takes on it.
//
// Every figure says where it comes from. A floor is no forecast: it counts each byte and each
// operation once, at the best rate that is known for it, and nothing else.
#pragma once

#include "graph/work.h"

#include <array>
#include <optional>
#include <span>
#include <string>

namespace lr::graph {

struct Figure {
    double value = 0;
    std::string source; // "measured ...", "data sheet ..."
};

struct Machine {
    std::string name;      // "h200"
    std::string device;    // "NVIDIA H200"
    Figure read;           // GB/s (1e9) of memory that is only read
    Figure copy;           // GB/s, read and written bytes together, of a copy
    Figure link;           // GB/s that come in from other ranks
    Figure bf16, fp8, fp4; // TFLOP/s (1e12) of matrix products
    Figure f32;            // TFLOP/s outside of products
    Figure launch;         // us between two launches of which the second needs the first

    double rate_tflops(Unit unit) const;
};

// The built-in ones: "h200", "b300".
std::vector<std::string_view> machine_names();
// kInvalidArgument where there is none of that name.
Result<Machine> machine(std::string_view name);

// A description as JSON: {"name": "h200", "device": "...", "read_gb_s": {"value": 4460, "source":
// "..."}, ...} with all figures of figure_fields() and no other key. `where` names it in errors.
Result<Machine> parse_machine(std::string_view json, std::string_view where);

// A figure's key in JSON, its unit and what it is.
struct FigureField {
    std::string_view key, unit, what;
    Figure Machine::*figure;
};
std::span<const FigureField> figure_fields();

enum class Bound : std::uint8_t { kNothing, kMemory, kArithmetic, kLink };
std::string_view bound_name(Bound bound); // "-", "memory", "arithmetic", "link"

struct Floor {
    double us = 0; // the largest of the three
    Bound bound = Bound::kNothing;
    double memory_us = 0;     // bytes: reads at `read`, writes at what `copy` leaves for them
    double arithmetic_us = 0; // the sum over the units
    double link_us = 0;
};
Floor floor_of(const Machine& machine, const Work& work);

} // namespace lr::graph
