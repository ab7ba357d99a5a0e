// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/peaks.h"

#include "cpu/isa.h"

#include <array>
#include <atomic>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace lr::cli {
namespace {

constexpr std::array kReadWays = {
    ReadWay{1, 0},   ReadWay{1, 1024}, ReadWay{2, 1024}, ReadWay{4, 0},
    ReadWay{4, 512}, ReadWay{4, 1024}, ReadWay{8, 512},  ReadWay{8, 1024},
};
constexpr std::int64_t kLine = 64;

// What was read goes here, or the compiler would not read it.
std::atomic<std::int64_t> sink = 0;

using Words = std::int64_t __attribute__((vector_size(16), may_alias));

template <std::int64_t kStreams>
std::int64_t read_streams(const std::byte* from, std::int64_t bytes, std::int64_t ahead) {
    const std::int64_t stride = bytes / kStreams / kLine * kLine;
    Words first{}, second{};
    for (std::int64_t at = 0; at < stride; at += kLine)
        for (std::int64_t stream = 0; stream < kStreams; ++stream) {
            const std::byte* line = from + stream * stride + at;
            if (ahead > 0)
                __builtin_prefetch(line + ahead);
            const auto* words = reinterpret_cast<const Words*>(line);
            first ^= words[0] ^ words[1];
            second ^= words[2] ^ words[3];
        }
    first ^= second;
    return first[0] ^ first[1];
}

// Enough chains of dependent multiply-adds for two units of four cycles, and few enough for 16
// registers. The loops over them are unrolled, or the sums would lie in memory.
constexpr int kChains = 12;

float multiply_add_plain(std::int64_t repeats) {
    using Four = float __attribute__((vector_size(16)));
    Four sums[kChains] = {};
    const Four factor = {0.5f, 0.5f, 0.5f, 0.5f}, term = {1.0f, 1.0f, 1.0f, 1.0f};
    for (std::int64_t i = 0; i < repeats; ++i)
#pragma GCC unroll 12
        for (Four& sum : sums)
            sum = sum * factor + term;
    float total = 0;
    for (const Four& sum : sums)
        total += sum[0];
    return total;
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) float multiply_add_avx2(std::int64_t repeats) {
    __m256 sums[kChains];
    for (__m256& sum : sums)
        sum = _mm256_setzero_ps();
    const __m256 factor = _mm256_set1_ps(0.5f), term = _mm256_set1_ps(1.0f);
    for (std::int64_t i = 0; i < repeats; ++i)
#pragma GCC unroll 12
        for (__m256& sum : sums)
            sum = _mm256_fmadd_ps(sum, factor, term);
    float total = 0;
    for (const __m256& sum : sums)
        total += _mm256_cvtss_f32(sum);
    return total;
}

__attribute__((target("avx512f"))) float multiply_add_avx512(std::int64_t repeats) {
    const __m512 factor = _mm512_set1_ps(0.5f), term = _mm512_set1_ps(1.0f);
    __m512 sums[kChains];
    for (__m512& sum : sums)
        sum = term;
    for (std::int64_t i = 0; i < repeats; ++i)
#pragma GCC unroll 12
        for (__m512& sum : sums)
            sum = _mm512_fmadd_ps(sum, factor, term);
    float total = 0;
    for (const __m512& sum : sums)
        total += _mm512_cvtss_f32(sum);
    return total;
}
#endif

std::int64_t lanes_of(cpu::Isa isa) {
    switch (isa) {
    case cpu::Isa::kAvx512Bf16:
    case cpu::Isa::kAvx512:
        return 16;
    case cpu::Isa::kAvx2:
        return 8;
    case cpu::Isa::kBaseline:
        break;
    }
    return 4;
}

} // namespace

std::span<const ReadWay> read_ways() {
    return kReadWays;
}

void read_memory(const std::byte* from, std::int64_t bytes, ReadWay way) {
    std::int64_t seen = 0;
    switch (way.streams) {
    case 8:
        seen = read_streams<8>(from, bytes, way.ahead);
        break;
    case 4:
        seen = read_streams<4>(from, bytes, way.ahead);
        break;
    case 2:
        seen = read_streams<2>(from, bytes, way.ahead);
        break;
    default:
        seen = read_streams<1>(from, bytes, way.ahead);
    }
    sink.fetch_xor(seen, std::memory_order_relaxed);
}

void multiply_add(std::int64_t repeats) {
    float total = 0;
    switch (cpu::isa()) {
#if defined(__x86_64__)
    case cpu::Isa::kAvx512Bf16:
    case cpu::Isa::kAvx512:
        total = multiply_add_avx512(repeats);
        break;
    case cpu::Isa::kAvx2:
        total = multiply_add_avx2(repeats);
        break;
#endif
    default:
        total = multiply_add_plain(repeats);
    }
    sink.fetch_xor(static_cast<std::int64_t>(total), std::memory_order_relaxed);
}

double multiply_add_flops(std::int64_t repeats) {
    return 2.0 * static_cast<double>(repeats * kChains * lanes_of(cpu::isa()));
}

} // namespace lr::cli
