// SPDX-License-Identifier: Apache-2.0
//
// cpu/kernels/sets.h: one table for each instruction set, each defined in a file of its own.
#pragma once

#include "cpu/kernels/bf16_dot.h"
#include "cpu/kernels/kernels.h"

namespace lr::cpu {

extern const Kernels kBaselineKernels;
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;
extern const Bf16Kernels kAvx512Bf16Dots;

} // namespace lr::cpu
