// SPDX-License-Identifier: Apache-2.0
#include "cpu/isa.h"

#include "core/log.h"

#include <array>
#include <cstdlib>

namespace lr::cpu {
namespace {

struct Available {
    std::array<Isa, 4> isas = {Isa::kBaseline};
    std::size_t count = 1;

    Available() {
#if defined(__x86_64__)
        if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c())
            isas[count++] = Isa::kAvx2;
        if (count == 2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
            isas[count++] = Isa::kAvx512;
        if (count == 3 && __builtin_cpu_supports("avx512vbmi") &&
            __builtin_cpu_supports("avx512bf16"))
            isas[count++] = Isa::kAvx512Bf16;
#endif
    }

#if defined(__x86_64__)
    // Every processor with AVX2 has F16C, but a virtual machine may hide it; clang 14 does not know
    // the name in __builtin_cpu_supports.
    static bool has_f16c() {
        unsigned eax = 1, ebx = 0, ecx = 0, edx = 0;
        __asm__("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
        return ecx >> 29 & 1;
    }
#endif
};

// VDPBF16PS takes pairs of numbers as fast as FMA takes single ones on AMD's processors; on Intel's
// it has half that rate or less (docs/PERFORMANCE.md).
bool multiplies_bf16_fast() {
#if defined(__x86_64__)
    return __builtin_cpu_is("amd");
#else
    return false;
#endif
}

Isa fastest() {
    const std::span<const Isa> available = available_isas();
    if (available.back() == Isa::kAvx512Bf16 && !multiplies_bf16_fast())
        return Isa::kAvx512;
    return available.back();
}

Isa choose() {
    const std::span<const Isa> available = available_isas();
    const char* wanted = std::getenv("LIVEROW_ISA");
    if (!wanted)
        return fastest();
    for (Isa isa : available)
        if (isa_name(isa) == wanted)
            return isa;
    log_warning("LIVEROW_ISA={}: not an instruction set of this machine; using {}", wanted,
                isa_name(fastest()));
    return fastest();
}

} // namespace

std::string_view isa_name(Isa isa) {
    constexpr std::array<std::string_view, 4> kNames = {"x86-64-v2", "avx2", "avx512",
                                                        "avx512bf16"};
    return kNames[static_cast<std::size_t>(isa)];
}

std::span<const Isa> available_isas() {
    static const Available available;
    return {available.isas.data(), available.count};
}

Isa isa() {
    static const Isa chosen = choose();
    return chosen;
}

} // namespace lr::cpu
