// SPDX-License-Identifier: Apache-2.0
//
// cuda/quant/quant.h: launchers of the ops in ops/quant/, as cuda/run.h calls them, and the same
// quantisation of the live rows of experts.
#pragma once

#include "core/status.h"
#include "cuda/run.h"
#include "ops/quant/fp8_quant.h"
#include "ops/quant/nvfp4_quant.h"

namespace lr::cuda {

Status fp8_quant(const ops::Fp8QuantArgs& args, const Lane& lane);
Status nvfp4_quant(const ops::Nvfp4QuantArgs& args, const Lane& lane);

// The rows of experts, [start[e], end[e]) for each e; the others are left alone.
Status fp8_quant(const ops::Fp8QuantArgs& args, ConstView start, ConstView end, const Lane& lane);
Status nvfp4_quant(const ops::Nvfp4QuantArgs& args, ConstView start, ConstView end,
                   const Lane& lane);

} // namespace lr::cuda
