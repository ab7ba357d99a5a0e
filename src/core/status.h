// SPDX-License-Identifier: Apache-2.0
//
// core/status.h: the one error type for everything the outside world can cause (a file, a flag, a
// request, a missing device, memory). Our own mistakes are LR_CHECK (core/check.h).
//
// A message says, in this order: what was being done, where, what was expected, what was found,
// and, when there is something the reader can do, a hint. Build it with fmt:
//   return fail(Code::kInvalidFile, "safetensors {}: tensor '{}': expected dtype BF16, got {}",
//   ...);
//
// Result<T> is tl::expected<T, Status>; Status itself is "ok or an error". Both are [[nodiscard]].
// No exception crosses a folder border.
#pragma once

#include <fmt/format.h>
#include <tl/expected.hpp>

#include <string>
#include <utility>

namespace lr {

enum class Code {
    kOk,
    kInvalidArgument,   // a flag, a request field or a parameter the caller may change
    kInvalidFile,       // a file's contents are not what its format promises
    kNotFound,          // a file, tensor, token or device that should exist does not
    kUnsupported,       // well formed, understood, and not something this build can do
    kResourceExhausted, // memory, slots, pages
    kInternal,          // an environment failure that is nobody's input (I/O error, thread start)
};

// Stable lower-case name of a code, for logs and JSON ("invalid_file").
const char* code_name(Code code);

class [[nodiscard]] Status {
  public:
    Status() = default; // ok
    Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}

    bool ok() const { return code_ == Code::kOk; }
    Code code() const { return code_; }
    const std::string& message() const { return message_; }

    // The same error with "prefix: " before its message; an ok status stays ok.
    Status with_context(std::string_view prefix) const;

  private:
    Code code_ = Code::kOk;
    std::string message_;
};

template <typename T> using Result = tl::expected<T, Status>;

// What fail() returns: converts to Status and to the error arm of any Result<T>.
class Failure : public tl::unexpected<Status> {
  public:
    explicit Failure(Status status) : tl::unexpected<Status>(std::move(status)) {}
    operator Status() && { return std::move(value()); }
};

// `return fail(Code::kNotFound, "...", ...);` in a function returning Status or Result<T>.
template <typename... Ts> Failure fail(Code code, fmt::format_string<Ts...> format, Ts&&... args) {
    return Failure(Status(code, fmt::format(format, std::forward<Ts>(args)...)));
}
inline Failure fail(Status status) {
    return Failure(std::move(status));
}

} // namespace lr

// LR_TRY(expression): go on when the Status is ok, else return it (as Status or Result).
#define LR_TRY(expression)                                                                         \
    do {                                                                                           \
        ::lr::Status lr_status_ = (expression);                                                    \
        if (!lr_status_.ok())                                                                      \
            return ::lr::fail(std::move(lr_status_));                                              \
    } while (false)

// LR_TRY_ASSIGN(auto x, expression): x = the Result's value, else return its error.
#define LR_TRY_ASSIGN(declaration, expression)                                                     \
    LR_TRY_ASSIGN_IMPL(LR_CONCAT(lr_result_, __LINE__), declaration, expression)
#define LR_TRY_ASSIGN_IMPL(result, declaration, expression)                                        \
    auto result = (expression);                                                                    \
    if (!result)                                                                                   \
        return ::lr::fail(std::move(result).error());                                              \
    declaration = std::move(*result)
#define LR_CONCAT(a, b) LR_CONCAT_INNER(a, b)
#define LR_CONCAT_INNER(a, b) a##b
