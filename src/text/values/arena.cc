// SPDX-License-Identifier: Apache-2.0
#include "text/values/arena.h"

#include "text/values/error.h"

#include <algorithm>

namespace lr::text::jinja {

namespace {

// A short conversation fits the first block; later ones double, so that a long one needs few.
constexpr std::size_t kFirstBlockBytes = 16 * 1024;
constexpr std::size_t kLargestBlockBytes = 1024 * 1024;

} // namespace

void* Arena::allocate(std::size_t bytes) {
    charge(bytes);
    bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    if (bytes > free_bytes_) {
        const std::size_t doubled = kFirstBlockBytes << std::min<std::size_t>(blocks_.size(), 10);
        const std::size_t block = std::max(bytes, std::min(doubled, kLargestBlockBytes));
        // operator new[] aligns to 16 on every target of this project.
        static_assert(__STDCPP_DEFAULT_NEW_ALIGNMENT__ >= kAlignment);
        blocks_.push_back(std::make_unique_for_overwrite<std::byte[]>(block));
        free_ = blocks_.back().get();
        free_bytes_ = block;
    }
    void* result = free_;
    free_ += bytes;
    free_bytes_ -= bytes;
    return result;
}

void Arena::throw_full() const {
    throw_limit("expected at most {} bytes of values, got more", limit_);
}

} // namespace lr::text::jinja
