// SPDX-License-Identifier: Apache-2.0
#include "cpu/kernels/kernels.h"

#include "cpu/kernels/sets.h"

namespace lr::cpu {

namespace {

#if defined(__x86_64__)
Kernels with_bf16_dots(Isa isa, Kernels set, const Bf16Kernels& dots) {
    set.isa = isa;
    set.bf16 = &dots;
    return set;
}
#endif

} // namespace

const Kernels& kernels(Isa isa) {
#if defined(__x86_64__)
    static const Kernels avx512_bf16 =
        with_bf16_dots(Isa::kAvx512Bf16, kAvx512Kernels, kAvx512Bf16Dots);
    if (isa == Isa::kAvx512Bf16)
        return avx512_bf16;
    if (isa == Isa::kAvx512)
        return kAvx512Kernels;
    if (isa == Isa::kAvx2)
        return kAvx2Kernels;
#endif
    return kBaselineKernels;
}

const Kernels& kernels() {
    static const Kernels& set = kernels(isa());
    return set;
}

} // namespace lr::cpu
