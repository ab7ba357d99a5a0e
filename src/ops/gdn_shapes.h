// SPDX-License-Identifier: Apache-2.0
//
// ops/gdn_shapes.h: the conditions that several Gated DeltaNet ops share, as parts of their check.
#pragma once

#include "core/dims.h"
#include "ops/weight.h"

#include <cstdint>
#include <string_view>

namespace lr::ops {

// Value heads divide evenly among key heads.
void check_gdn_heads(ShapeCheck& check, std::int64_t hk, std::int64_t hv);

// A head width ("dk", "dv") is a multiple of 16.
void check_gdn_width(ShapeCheck& check, std::string_view name, std::int64_t width);

// A plain weight [channels, 4].
void check_conv_weight(ShapeCheck& check, const Weight& conv, std::int64_t channels);

} // namespace lr::ops
