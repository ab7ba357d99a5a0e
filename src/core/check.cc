// SPDX-License-Identifier: Apache-2.0
#include "core/check.h"

#include <cstdio>
#include <cstdlib>

namespace lr::detail {

void check_failed(const char* file, int line, const char* expression, const std::string& values) {
    std::fprintf(stderr, "liverow: internal error at %s:%d: check failed: %s%s\n", file, line,
                 expression, values.c_str());
    std::fflush(stderr);
    std::abort();
}

} // namespace lr::detail
