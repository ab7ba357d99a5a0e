// SPDX-License-Identifier: Apache-2.0
//
// cpu/isa.h: the instruction sets that kernels are written for, chosen once a process.
//
// Every kernel gives the same bits in each of the first three (cpu/kernels/kernels.h says how). The
// last has instructions for products of bf16 numbers, whose sums have another order
// (cpu/kernels/bf16_dot.h): where both operands are exact in bf16 its bits are its own.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace lr::cpu {

enum class Isa : std::uint8_t {
    kBaseline,   // x86-64-v2: SSE4.2; no fused multiply-add, which is emulated exactly
    kAvx2,       // AVX2, FMA, F16C
    kAvx512,     // AVX-512 F, BW, DQ, VL
    kAvx512Bf16, // those, VBMI and BF16
};

// "x86-64-v2", "avx2", "avx512", "avx512bf16".
std::string_view isa_name(Isa isa);

// Those that this machine runs, slowest first.
std::span<const Isa> available_isas();

// The one in use: the fastest of available_isas(), which is the last but for avx512bf16 where its
// products are slow (isa.cc), or the one that the environment variable
// LIVEROW_ISA names (one that is unknown or that this machine lacks is ignored with a warning).
Isa isa();

} // namespace lr::cpu
