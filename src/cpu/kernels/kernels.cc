// SPDX-License-Identifier: Apache-2.0
#include "cpu/kernels/kernels.h"

#include "cpu/kernels/sets.h"

namespace lr::cpu {

const Kernels& kernels(Isa isa) {
#if defined(__x86_64__)
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
