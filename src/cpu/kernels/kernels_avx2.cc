// SPDX-License-Identifier: Apache-2.0
#if defined(__x86_64__)
#define LR_LANES "cpu/kernels/pairs_avx2.inc"
#include "cpu/kernels/kernels.inc"

namespace lr::cpu {

const Kernels kAvx2Kernels = {Isa::kAvx2, dot,         decode,     scale_blocks,
                              delta_row,  add_product, encode_bf16};

} // namespace lr::cpu
#endif
