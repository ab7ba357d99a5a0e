// SPDX-License-Identifier: Apache-2.0
//
// tests/fuzz/fuzz.h: what the fuzz targets share.
//
// A target is one file NAME_fuzz.cc with LLVMFuzzerTestOneInput. It may accept or refuse any bytes;
// it must not crash, hang or leak, and what it accepts must keep the promises it checks with
// FUZZ_CHECK. Seeds are the files of tests/fuzz/seeds/NAME; scripts/fuzz runs them all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#define FUZZ_CHECK(condition)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            std::fprintf(stderr, "%s:%d: broken promise: %s\n", __FILE__, __LINE__, #condition);   \
            std::abort();                                                                          \
        }                                                                                          \
    } while (false)

namespace lr::fuzz {

inline std::string_view as_text(const std::uint8_t* data, std::size_t size) {
    return {reinterpret_cast<const char*>(data), size};
}

} // namespace lr::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
