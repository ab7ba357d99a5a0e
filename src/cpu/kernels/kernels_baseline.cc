// SPDX-License-Identifier: Apache-2.0
#define LR_LANES "cpu/kernels/lanes_baseline.inc"
#include "cpu/kernels/kernels.inc"

namespace lr::cpu {

const Kernels kBaselineKernels = {Isa::kBaseline, dot,         decode,     scale_blocks,
                                  delta_row,      add_product, encode_bf16};

} // namespace lr::cpu
