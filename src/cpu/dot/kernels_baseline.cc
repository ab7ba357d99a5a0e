// SPDX-License-Identifier: Apache-2.0
#include "cpu/dot/lanes_baseline.h"

#include "cpu/decode.h"
#include "cpu/dot/sets.h"
#include "cpu/dot/tile.h"
#include "numerics/e4m3.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "cpu/dot/kernels.inc"

namespace lr::cpu {

const DotKernels kDotBaseline = {Isa::kBaseline, dot, decode};

} // namespace lr::cpu
