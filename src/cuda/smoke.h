// SPDX-License-Identifier: Apache-2.0
//
// cuda/smoke.h: does this build compute on this GPU? One trivial kernel, checked to the last bit.
#pragma once

#include "core/status.h"
#include "cuda/stream.h"

#include <cstdint>

namespace lr::cuda {

// out[i] = bf16(a[i] + b[i]): the sum in f32, one round to nearest even. n >= 0. out may alias a or
// b exactly. Enqueues one launch; capture-safe.
Status vector_add(const std::uint16_t* a, const std::uint16_t* b, std::uint16_t* out,
                  std::int64_t n, Stream stream);

struct SmokeResult {
    std::int64_t elements = 0;
    std::int64_t wrong = 0; // elements that differ from the host's result
    std::int64_t first_wrong = -1;
    double us = 0;       // median of one vector_add, cold L2
    double gb_per_s = 0; // 6 bytes an element over that time
};

// Adds two vectors of bf16 (large enough to spill the L2) on the given device and compares with the
// host. An error is an environment failure; a wrong result is in the answer.
Result<SmokeResult> run_smoke(int device);

} // namespace lr::cuda
