// SPDX-License-Identifier: Apache-2.0
#if defined(__x86_64__)
#include "cpu/dot/pairs_avx2.h"

#include "cpu/decode.h"
#include "cpu/dot/sets.h"
#include "cpu/dot/tile.h"
#include "numerics/e4m3.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "cpu/dot/kernels.inc"

namespace lr::cpu {

const DotKernels kDotAvx2 = {Isa::kAvx2, dot, decode};

} // namespace lr::cpu
#endif
