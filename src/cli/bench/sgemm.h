// SPDX-License-Identifier: Apache-2.0
//
// cli/bench/sgemm.h: OpenBLAS's f32 matrix product, where the library is installed: what a
// prefill's arithmetic is held against beside the peak.
#pragma once

#include "core/status.h"

#include <cstdint>
#include <string>

namespace lr::cli {

struct SgemmFigure {
    std::string library;   // as it names itself
    std::int64_t size = 0; // of three square matrices
    int threads = 0;
    double flops = 0; // operations/s, the median of some runs
};

// kNotFound where libopenblas.so cannot be loaded.
Result<SgemmFigure> measure_sgemm(int threads);

} // namespace lr::cli
