// SPDX-License-Identifier: Apache-2.0
//
// engine/place.h: the device that steps run on.
#pragma once

#include <cstdint>

namespace lr::engine {

struct Place {
    std::int32_t cuda = -1; // number of the GPU; -1: the CPU

    bool is_cuda() const { return cuda >= 0; }
};

} // namespace lr::engine
