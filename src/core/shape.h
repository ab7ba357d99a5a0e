// SPDX-License-Identifier: Apache-2.0
//
// core/shape.h: up to five dimensions of a row-major tensor. Trivially copyable.
#pragma once

#include "core/check.h"

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

namespace lr {

class Shape {
  public:
    static constexpr int kMaxRank = 5;

    constexpr Shape() = default;
    constexpr Shape(std::initializer_list<std::int64_t> dims) {
        for (std::int64_t dim : dims)
            push_back(dim);
    }

    constexpr int rank() const { return rank_; }
    constexpr std::int64_t operator[](int i) const { return dims_[static_cast<std::size_t>(i)]; }
    constexpr std::int64_t& operator[](int i) { return dims_[static_cast<std::size_t>(i)]; }
    constexpr const std::int64_t* begin() const { return dims_.data(); }
    constexpr const std::int64_t* end() const { return dims_.data() + rank_; }

    constexpr void push_back(std::int64_t dim) {
        if (rank_ == kMaxRank)
            detail::check_failed(__FILE__, __LINE__, "rank < kMaxRank", "");
        dims_[static_cast<std::size_t>(rank_++)] = dim;
    }

    // Product of all dims; 1 for rank 0.
    constexpr std::int64_t count() const {
        std::int64_t product = 1;
        for (std::int64_t dim : *this)
            product *= dim;
        return product;
    }

    // Product of the dims after the first: elements of one "row" of the tensor.
    constexpr std::int64_t row_count() const {
        std::int64_t product = 1;
        for (int i = 1; i < rank_; ++i)
            product *= dims_[static_cast<std::size_t>(i)];
        return product;
    }

    friend constexpr bool operator==(const Shape& a, const Shape& b) {
        if (a.rank_ != b.rank_)
            return false;
        for (int i = 0; i < a.rank_; ++i)
            if (a[i] != b[i])
                return false;
        return true;
    }

    // "[54, 32, 128]"
    std::string to_string() const;

  private:
    std::array<std::int64_t, kMaxRank> dims_{};
    int rank_ = 0;
};

} // namespace lr
