// SPDX-License-Identifier: Apache-2.0
//
// text/values/arena.h: memory that lives as long as one render (or one compiled template) and goes
// away at once. So values are plain pointers, a namespace may hold itself, and nothing recursive is
// ever destroyed.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace lr::text::jinja {

class Arena {
  public:
    static constexpr std::size_t kAlignment = 16;

    explicit Arena(std::size_t limit_bytes) : left_(limit_bytes), limit_(limit_bytes) {}

    // Aligned to kAlignment. Throws the limit's error when more than limit_bytes would be in use.
    void* allocate(std::size_t bytes);
    // Counts memory that lies elsewhere against the limit.
    void charge(std::size_t bytes) {
        if (bytes > left_)
            throw_full();
        left_ -= bytes;
    }

    template <typename T, typename... Args> T* make(Args&&... args) {
        static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= kAlignment);
        return new (allocate(sizeof(T))) T{std::forward<Args>(args)...};
    }
    template <typename T> T* make_array(std::size_t count) {
        static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= kAlignment);
        if (count > limit_ / sizeof(T))
            throw_full();
        return count == 0 ? nullptr : new (allocate(count * sizeof(T))) T[count];
    }

  private:
    [[noreturn]] void throw_full() const;

    std::vector<std::unique_ptr<std::byte[]>> blocks_;
    std::byte* free_ = nullptr; // in the last block
    std::size_t free_bytes_ = 0;
    std::size_t left_;
    std::size_t limit_;
};

} // namespace lr::text::jinja
