// SPDX-License-Identifier: Apache-2.0
#include "core/clock.h"

#include <ctime>

namespace lr {

double monotonic_seconds() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

} // namespace lr
