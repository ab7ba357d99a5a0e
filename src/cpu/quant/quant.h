// SPDX-License-Identifier: Apache-2.0
//
// cpu/quant/quant.h: CPU functions of ops/quant. Each runs the contract in its op's header;
// arguments have passed that op's check.
#pragma once

#include "ops/quant/fp8_quant.h"
#include "ops/quant/nvfp4_quant.h"

namespace lr {
class ThreadPool;
}

namespace lr::cpu {

void fp8_quant(const ops::Fp8QuantArgs& args, ThreadPool& pool);
void nvfp4_quant(const ops::Nvfp4QuantArgs& args, ThreadPool& pool);

} // namespace lr::cpu
