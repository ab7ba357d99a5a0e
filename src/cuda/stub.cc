// SPDX-License-Identifier: Apache-2.0
//
// The functions of cuda/ in a build without the CUDA toolkit: each says so.
#include "core/check.h"
#include "cuda/device.h"
#include "cuda/graph.h"
#include "cuda/run.h"
#include "cuda/smoke.h"
#include "cuda/stream.h"
#include "cuda/timeline.h"
#include "cuda/weights.h"

namespace lr::cuda {
namespace {

Failure no_cuda() {
    return fail(Code::kUnsupported, "this build has no CUDA");
}

} // namespace

Result<DeviceList> list_devices() {
    return no_cuda();
}

Status use_device(int) {
    return no_cuda();
}

Result<StreamOwner> StreamOwner::create() {
    return no_cuda();
}

StreamOwner::~StreamOwner() = default;

Status synchronize(Stream) {
    return no_cuda();
}

Result<DeviceBuffer> DeviceBuffer::allocate(std::size_t) {
    return no_cuda();
}

DeviceBuffer::~DeviceBuffer() {
    LR_CHECK(data_ == nullptr);
}

Status copy_in(std::byte*, std::span<const std::byte>, Stream) {
    return no_cuda();
}

Status copy_out(const std::byte*, std::span<std::byte>, Stream) {
    return no_cuda();
}

Status copy_within(std::byte*, const std::byte*, std::size_t, Stream) {
    return no_cuda();
}

Status zero(std::byte*, std::size_t, Stream) {
    return no_cuda();
}

Result<CapturedGraph> CapturedGraph::capture(Stream, FunctionRef<Status()>) {
    return no_cuda();
}

CapturedGraph::~CapturedGraph() {
    LR_CHECK(executable_ == nullptr);
}

Status CapturedGraph::replay(Stream) const {
    return no_cuda();
}

Status DeviceBuffer::upload(const void*, Stream) {
    return no_cuda();
}

Status DeviceBuffer::download(void*, Stream) const {
    return no_cuda();
}

Status vector_add(const std::uint16_t*, const std::uint16_t*, std::uint16_t*, std::int64_t,
                  Stream) {
    return no_cuda();
}

Result<SmokeResult> run_smoke(int) {
    return no_cuda();
}

Status run(const ops::AnyArgs&, const Lane&) {
    return no_cuda();
}

std::int64_t scratch_bytes(const ops::AnyArgs&) {
    return 0;
}

Result<Timeline> Timeline::create(std::size_t) {
    return no_cuda();
}

Timeline::~Timeline() = default;

Status Timeline::mark(Stream) {
    return no_cuda();
}

Result<std::vector<std::int64_t>> Timeline::nanoseconds() const {
    return no_cuda();
}

Status hold(Stream, std::int64_t) {
    return no_cuda();
}

Result<DeviceWeight> upload(const ops::Weight&, Staging&, ThreadPool&) {
    return no_cuda();
}

Result<Staging> Staging::create(Stream) {
    return no_cuda();
}

Staging::Staging(Staging&& other) noexcept
    : stream_(other.stream_), buffers_(other.buffers_), current_(other.current_) {}

Staging::~Staging() = default;

Result<std::span<std::byte>> Staging::next() {
    return no_cuda();
}

Status Staging::send(std::byte*, std::size_t) {
    return no_cuda();
}

} // namespace lr::cuda
