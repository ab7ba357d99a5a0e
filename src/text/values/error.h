// SPDX-License-Identifier: Apache-2.0
//
// text/values/error.h: how a template's mistake leaves the code that notices it.
//
// A template language has exceptions of its own, so here alone C++ exceptions carry them. They stay
// in text/values and text/jinja: jinja/template.cc catches every one, adds the place, and returns a
// Status.
#pragma once

#include "core/status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace lr::text::jinja {

struct TemplateError {
    Code code;
    std::string message;   // without the place
    bool verbatim = false; // raise_exception's own words: no place is put before them
    std::optional<std::uint32_t> at = std::nullopt; // byte of the source, where known
};

// What Python would raise here: a wrong type, a missing key, a division by zero.
template <typename... Ts>
[[noreturn]] void throw_error(fmt::format_string<Ts...> format, Ts&&... args) {
    throw TemplateError{Code::kInvalidArgument, fmt::format(format, std::forward<Ts>(args)...)};
}

// What Python could do and this engine does not.
template <typename... Ts>
[[noreturn]] void throw_unsupported(fmt::format_string<Ts...> format, Ts&&... args) {
    throw TemplateError{Code::kUnsupported, fmt::format(format, std::forward<Ts>(args)...)};
}

// One of the limits of text/values/context.h.
template <typename... Ts>
[[noreturn]] void throw_limit(fmt::format_string<Ts...> format, Ts&&... args) {
    throw TemplateError{Code::kResourceExhausted, fmt::format(format, std::forward<Ts>(args)...)};
}

} // namespace lr::text::jinja
