// SPDX-License-Identifier: Apache-2.0
#include "cuda/graph.h"

#include "cuda/detail/check.h"

namespace lr::cuda {
namespace {

// A cudaGraph_t that goes away.
struct GraphOwner {
    cudaGraph_t graph = nullptr;
    ~GraphOwner() {
        if (graph)
            cudaGraphDestroy(graph);
    }
};

} // namespace

Result<CapturedGraph> CapturedGraph::capture(Stream stream, FunctionRef<Status()> enqueue) {
    CUDA_CHECK(cudaStreamBeginCapture(detail::native(stream), cudaStreamCaptureModeThreadLocal));
    const Status enqueued = enqueue();
    GraphOwner owner;
    const cudaError_t ended = cudaStreamEndCapture(detail::native(stream), &owner.graph);
    LR_TRY(enqueued); // the first fault says more than the capture it spoiled
    CUDA_CHECK(ended);
    std::size_t nodes = 0;
    CUDA_CHECK(cudaGraphGetNodes(owner.graph, nullptr, &nodes));
    cudaGraphExec_t executable = nullptr;
    CUDA_CHECK(cudaGraphInstantiate(&executable, owner.graph, 0));
    return CapturedGraph(executable, nodes);
}

CapturedGraph::~CapturedGraph() {
    if (executable_)
        cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(executable_));
}

Status CapturedGraph::replay(Stream stream) const {
    CUDA_CHECK(cudaGraphLaunch(static_cast<cudaGraphExec_t>(executable_), detail::native(stream)));
    return {};
}

} // namespace lr::cuda
