// SPDX-License-Identifier: Apache-2.0
//
// core/check.h: checks for our own mistakes. They are always on, print the two values and the
// place, and abort. What the outside world can cause is a Status (core/status.h), never a check.
//
//   LR_CHECK(condition)          LR_CHECK_EQ(a, b)  _NE _LT _LE _GT _GE
//   LR_DCHECK(condition)         only where NDEBUG is not defined; for hot loops
#pragma once

#include <fmt/format.h>

#include <string>

namespace lr::detail {

[[noreturn]] void check_failed(const char* file, int line, const char* expression,
                               const std::string& values);

template <typename A, typename B> [[noreturn]] void
check_op_failed(const char* file, int line, const char* expression, const A& a, const B& b) {
    check_failed(file, line, expression, fmt::format(": {} vs {}", a, b));
}

} // namespace lr::detail

#define LR_CHECK(condition)                                                                        \
    do {                                                                                           \
        if (!(condition)) [[unlikely]]                                                             \
            ::lr::detail::check_failed(__FILE__, __LINE__, #condition, "");                        \
    } while (false)

#define LR_CHECK_OP(op, a, b)                                                                      \
    do {                                                                                           \
        const auto& lr_a_ = (a);                                                                   \
        const auto& lr_b_ = (b);                                                                   \
        if (!(lr_a_ op lr_b_)) [[unlikely]]                                                        \
            ::lr::detail::check_op_failed(__FILE__, __LINE__, #a " " #op " " #b, lr_a_, lr_b_);    \
    } while (false)

#define LR_CHECK_EQ(a, b) LR_CHECK_OP(==, a, b)
#define LR_CHECK_NE(a, b) LR_CHECK_OP(!=, a, b)
#define LR_CHECK_LT(a, b) LR_CHECK_OP(<, a, b)
#define LR_CHECK_LE(a, b) LR_CHECK_OP(<=, a, b)
#define LR_CHECK_GT(a, b) LR_CHECK_OP(>, a, b)
#define LR_CHECK_GE(a, b) LR_CHECK_OP(>=, a, b)

#ifdef NDEBUG
#define LR_DCHECK(condition) static_cast<void>(0)
#else
#define LR_DCHECK(condition) LR_CHECK(condition)
#endif
