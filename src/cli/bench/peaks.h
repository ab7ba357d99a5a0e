// SPDX-License-Identifier: Apache-2.0
//
// cli/bench/peaks.h: the inner loops of the floors: reading memory and multiplying, nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace lr::cli {

// How a thread reads: from several places in turn, asking for what lies `ahead` bytes further on.
struct ReadWay {
    std::int64_t streams; // 1, 2, 4 or 8
    std::int64_t ahead;   // bytes; 0: left to the processor
};

// Which of them is the fastest depends on the processor, its pages and its neighbours.
std::span<const ReadWay> read_ways();

// Reads the lines of [from, from + bytes); up to 8 * 64 bytes at the end may be left out.
void read_memory(const std::byte* from, std::int64_t bytes, ReadWay way);

// `repeats` rounds of independent f32 multiply-adds in the registers of the instruction set in use
// (cpu/isa.h), and the operations in them: an addition and a multiplication each.
void multiply_add(std::int64_t repeats);
double multiply_add_flops(std::int64_t repeats);

} // namespace lr::cli
