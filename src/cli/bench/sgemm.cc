// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/sgemm.h"

#include "cli/bench/samples.h"
#include "core/clock.h"

#include <dlfcn.h>
#include <vector>

namespace lr::cli {
namespace {

constexpr int kSize = 2048;
constexpr int kRuns = 5;

// The C interface that every BLAS has had since 1998; 101: row-major, 111: not transposed.
using Sgemm = void (*)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                       const float* a, int lda, const float* b, int ldb, float beta, float* c,
                       int ldc);
using SetThreads = void (*)(int);
using Config = char* (*)();

template <typename Function> Function symbol(void* library, const char* name) {
    return reinterpret_cast<Function>(dlsym(library, name));
}

} // namespace

Result<SgemmFigure> measure_sgemm(int threads) {
    void* library = nullptr;
    for (const char* name : {"libopenblas.so.0", "libopenblas.so"})
        if (!library)
            library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return fail(Code::kNotFound, "OpenBLAS: libopenblas.so.0 is not installed");
    // Never closed: its threads may still be running its code.
    const auto sgemm = symbol<Sgemm>(library, "cblas_sgemm");
    const auto set_threads = symbol<SetThreads>(library, "openblas_set_num_threads");
    const auto config = symbol<Config>(library, "openblas_get_config");
    if (!sgemm || !set_threads || !config)
        return fail(Code::kNotFound, "OpenBLAS: the library lacks cblas_sgemm");
    set_threads(threads);
    const auto count = static_cast<std::size_t>(kSize) * kSize;
    const std::vector<float> a(count, 0.5f), b(count, 0.25f);
    std::vector<float> c(count);
    Samples samples;
    for (int run = 0; run <= kRuns; ++run) {
        const Stopwatch watch;
        sgemm(101, 111, 111, kSize, kSize, kSize, 1.0f, a.data(), kSize, b.data(), kSize, 0.0f,
              c.data(), kSize);
        if (run > 0)
            samples.add(2.0 * kSize * kSize * kSize / watch.seconds());
    }
    if (c[0] != 0.125f * kSize)
        return fail(Code::kInternal, "OpenBLAS: sgemm: expected {}, got {}", 0.125f * kSize, c[0]);
    return SgemmFigure{
        .library = config(), .size = kSize, .threads = threads, .flops = samples.median()};
}

} // namespace lr::cli
