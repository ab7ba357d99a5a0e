// SPDX-License-Identifier: Apache-2.0
//
// bench/cuda/probes/probe.h: what the probes share.
//
// A probe measures one property of the card that a kernel's design depends on: what a boundary
// between kernels costs, how fast weights stream, how often a matrix instruction issues. It prints
// one row a case: name, case, value, unit. docs/PERFORMANCE.md says what follows from them.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <string>
#include <vector>

// A probe has nothing to fall back to: an error ends the program and names the call.
#define PROBE_CHECK(call)                                                                          \
    do {                                                                                           \
        const cudaError_t probe_code_ = (call);                                                    \
        if (probe_code_ != cudaSuccess) {                                                          \
            std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call,                     \
                         cudaGetErrorString(probe_code_));                                         \
            std::exit(1);                                                                          \
        }                                                                                          \
    } while (false)

namespace lr::probes {

struct Card {
    int multiprocessors = 0;
    double clock_ghz = 0; // the highest that the card reports
};

inline void row(const char* probe, const std::string& what, double value, const char* unit) {
    std::printf("%-22s %-52s %10.3f %s\n", probe, what.c_str(), value, unit);
    std::fflush(stdout);
}

inline double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

// Captures what `enqueue(stream)` launches, replays it and returns the median time of a replay.
template <typename Enqueue> double graph_us(Enqueue enqueue, int replays = 41) {
    cudaStream_t stream = nullptr;
    PROBE_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    PROBE_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    enqueue(stream);
    cudaGraph_t graph = nullptr;
    PROBE_CHECK(cudaStreamEndCapture(stream, &graph));
    cudaGraphExec_t executable = nullptr;
    PROBE_CHECK(cudaGraphInstantiate(&executable, graph, 0));
    cudaEvent_t start = nullptr, stop = nullptr;
    PROBE_CHECK(cudaEventCreate(&start));
    PROBE_CHECK(cudaEventCreate(&stop));
    std::vector<double> times;
    for (int i = 0; i < replays + 5; ++i) {
        PROBE_CHECK(cudaEventRecord(start, stream));
        PROBE_CHECK(cudaGraphLaunch(executable, stream));
        PROBE_CHECK(cudaEventRecord(stop, stream));
        PROBE_CHECK(cudaEventSynchronize(stop));
        float milliseconds = 0;
        PROBE_CHECK(cudaEventElapsedTime(&milliseconds, start, stop));
        if (i >= 5) // warm
            times.push_back(1e3 * static_cast<double>(milliseconds));
    }
    PROBE_CHECK(cudaEventDestroy(start));
    PROBE_CHECK(cudaEventDestroy(stop));
    PROBE_CHECK(cudaGraphExecDestroy(executable));
    PROBE_CHECK(cudaGraphDestroy(graph));
    PROBE_CHECK(cudaStreamDestroy(stream));
    return median(times);
}

// Launches with or without programmatic dependent launch on the kernel before it in the stream.
template <typename... Params, typename... Args>
void launch(cudaStream_t stream, bool early, dim3 grid, dim3 block, std::size_t shared_bytes,
            void (*kernel)(Params...), Args... args) {
    cudaLaunchConfig_t config{};
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = shared_bytes;
    config.stream = stream;
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    config.attrs = &attribute;
    config.numAttrs = early ? 1 : 0;
    PROBE_CHECK(cudaLaunchKernelEx(&config, kernel, static_cast<Params>(args)...));
}

// Device memory of mixed bits that are finite as bf16 and as f32: equal
// bytes would flatter the memory.
void* mixed_memory(std::size_t bytes); // main.cu
template <typename T> T* device_array(std::size_t count) {
    return static_cast<T*>(mixed_memory(count * sizeof(T)));
}

// The probes, one file each.
void probe_boundaries(const Card& card);    // boundaries.cu
void probe_weight_chains(const Card& card); // boundaries.cu
void probe_grid_barrier(const Card& card);  // barrier.cu
void probe_bf16_multiply(const Card& card); // bf16_multiply.cu
void probe_streaming(const Card& card);     // streaming.cu
void probe_wgmma(const Card& card);         // wgmma.cu
void probe_libraries();                     // libraries.cu

} // namespace lr::probes
