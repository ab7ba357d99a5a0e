// SPDX-License-Identifier: Apache-2.0
//
// cpu/dot/sets.h: one table for each instruction set, each defined in a file of its own.
#pragma once

#include "cpu/dot/kernels.h"

namespace lr::cpu {

extern const DotKernels kDotBaseline;
extern const DotKernels kDotAvx2;
extern const DotKernels kDotAvx512;

} // namespace lr::cpu
