// SPDX-License-Identifier: Apache-2.0
#if defined(__x86_64__)
#if !defined(__clang__)
// GCC 12 warns of its own intrinsics, which leave a masked-out operand undefined.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include "cpu/dot/lanes_avx512.h"

#include "cpu/decode.h"
#include "cpu/dot/sets.h"
#include "cpu/dot/tile.h"
#include "numerics/e4m3.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "cpu/dot/kernels.inc"

namespace lr::cpu {

const DotKernels kDotAvx512 = {Isa::kAvx512, dot, decode};

} // namespace lr::cpu
#endif
