// SPDX-License-Identifier: Apache-2.0
#include "graph/machine.h"

#include "core/json.h"

#include <algorithm>

namespace lr::graph {
namespace {

constexpr std::array kFields = {
    FigureField{"read_gb_s", "GB/s", "memory that is only read", &Machine::read},
    FigureField{"copy_gb_s", "GB/s", "read and written bytes together, of a copy", &Machine::copy},
    FigureField{"link_gb_s", "GB/s", "what comes in from other ranks", &Machine::link},
    FigureField{"bf16_tflop_s", "TFLOP/s", "products of bf16", &Machine::bf16},
    FigureField{"fp8_tflop_s", "TFLOP/s", "products of FP8 codes", &Machine::fp8},
    FigureField{"fp4_tflop_s", "TFLOP/s", "products of NVFP4 codes", &Machine::fp4},
    FigureField{"f32_tflop_s", "TFLOP/s", "f32 arithmetic outside of products", &Machine::f32},
    FigureField{"launch_us", "us", "from one dependent launch to the next", &Machine::launch},
};

Machine h200() {
    const std::string large = "measured, products of 8192^3";
    return {.name = "h200",
            .device = "NVIDIA H200, one card",
            .read = {4460, "measured, plain 128-bit loads of 1 GiB"},
            .copy = {4210, "measured, copy of 1 GiB"},
            .link = {393, "measured, copy from a peer over NVLink, one way"},
            .bf16 = {754, large},
            .fp8 = {1300, large + ", 1270 to 1330"},
            .fp4 = {754, "no FP4 units: codes expand exactly to bf16, " + large},
            .f32 = {67, "data sheet of the H200"},
            .launch = {0.76, "measured, programmatic dependent launch in a captured graph"}};
}

Machine b300() {
    const std::string sheet = "published for HGX B300, an eighth of its 8 cards, dense; not "
                              "measured by us";
    return {.name = "b300",
            .device = "NVIDIA B300, one card",
            .read = {8000, "published memory bandwidth; not measured by us"},
            .copy = {8000, "published memory bandwidth; not measured by us"},
            .link = {900, "published for NVLink 5, one way; not measured by us"},
            .bf16 = {2250, sheet},
            .fp8 = {4500, sheet},
            .fp4 = {13125, sheet},
            .f32 = {75, sheet},
            .launch = {0.76, "as on H200; not measured"}};
}

// A copy reads half of its bytes at the reading rate; the rest of its time is the other half's.
double write_gb_s(const Machine& m) {
    const double rest = 2 / m.copy.value - 1 / m.read.value;
    return rest > 0 ? 1 / rest : m.read.value;
}

// Microseconds of `count` at `rate` units of 1e9 (bytes) or 1e12 (operations) a second.
double microseconds(std::int64_t count, double rate, double unit) {
    return count == 0 ? 0 : static_cast<double>(count) / (rate * unit) * 1e6;
}

} // namespace

double Machine::rate_tflops(Unit unit) const {
    const std::array<double, kUnits> rates = {bf16.value, fp8.value, fp4.value, f32.value};
    return rates[static_cast<std::size_t>(unit)];
}

std::vector<std::string_view> machine_names() {
    return {"h200", "b300"};
}

Result<Machine> machine(std::string_view name) {
    for (Machine known : {h200(), b300()})
        if (known.name == name)
            return known;
    return fail(Code::kInvalidArgument, "machine: expected one of {}, got \"{}\"",
                fmt::join(machine_names(), ", "), name);
}

Result<Machine> parse_machine(std::string_view json, std::string_view where) {
    LR_TRY_ASSIGN(const Json document, parse_json(json, where));
    const JsonCursor root(std::string(where), document);
    LR_TRY(root.expect_object());
    Machine machine;
    for (const JsonMember& member : document.as_object().members())
        if (member.key != "name" && member.key != "device" &&
            std::none_of(kFields.begin(), kFields.end(),
                         [&](const FigureField& field) { return field.key == member.key; }))
            return root.member(member.key)
                .fail_here(Code::kInvalidFile, "no figure of a machine has this name");
    LR_TRY_ASSIGN(machine.name, root.required_string("name"));
    LR_TRY_ASSIGN(machine.device, root.required_string("device"));
    for (const FigureField& field : kFields) {
        LR_TRY_ASSIGN(const JsonCursor figure, root.required_object(field.key));
        LR_TRY(figure.expect_keys({"value", "source"}));
        LR_TRY_ASSIGN((machine.*field.figure).value, figure.required_double("value", 1e-6, 1e9));
        LR_TRY_ASSIGN((machine.*field.figure).source, figure.required_string("source"));
    }
    return machine;
}

std::span<const FigureField> figure_fields() {
    return kFields;
}

std::string_view bound_name(Bound bound) {
    static constexpr std::array<std::string_view, 4> kNames = {"-", "memory", "arithmetic", "link"};
    return kNames[static_cast<std::size_t>(bound)];
}

Floor floor_of(const Machine& machine, const Work& work) {
    Floor floor;
    floor.memory_us = microseconds(work.read_bytes, machine.read.value, 1e9) +
                      microseconds(work.write_bytes, write_gb_s(machine), 1e9);
    for (std::size_t u = 0; u < kUnits; ++u)
        floor.arithmetic_us +=
            microseconds(work.flops[u], machine.rate_tflops(static_cast<Unit>(u)), 1e12);
    floor.link_us = microseconds(work.link_bytes, machine.link.value, 1e9);
    for (const auto& [us, bound] : {std::pair{floor.memory_us, Bound::kMemory},
                                    {floor.arithmetic_us, Bound::kArithmetic},
                                    {floor.link_us, Bound::kLink}})
        if (us > floor.us) {
            floor.us = us;
            floor.bound = bound;
        }
    return floor;
}

} // namespace lr::graph
