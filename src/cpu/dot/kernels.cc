// SPDX-License-Identifier: Apache-2.0
#include "cpu/dot/kernels.h"

#include "cpu/dot/sets.h"

namespace lr::cpu {

const DotKernels& dot_kernels(Isa isa) {
#if defined(__x86_64__)
    if (isa == Isa::kAvx512)
        return kDotAvx512;
    if (isa == Isa::kAvx2)
        return kDotAvx2;
#endif
    return kDotBaseline;
}

const DotKernels& dot_kernels() {
    static const DotKernels& kernels = dot_kernels(isa());
    return kernels;
}

} // namespace lr::cpu
