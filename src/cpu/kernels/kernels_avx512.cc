// SPDX-License-Identifier: Apache-2.0
#if defined(__x86_64__)
#if !defined(__clang__)
// GCC 12 warns of its own intrinsics, which leave a masked-out operand undefined.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#define LR_LANES "cpu/kernels/lanes_avx512.inc"
#include "cpu/kernels/kernels.inc"

namespace lr::cpu {

const Kernels kAvx512Kernels = {Isa::kAvx512, dot,         decode,     scale_blocks,
                                delta_row,    add_product, encode_bf16};

} // namespace lr::cpu
#endif
