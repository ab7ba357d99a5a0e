// SPDX-License-Identifier: Apache-2.0
#include "ops/gdn_shapes.h"

namespace lr::ops {

void check_gdn_heads(ShapeCheck& check, std::int64_t hk, std::int64_t hv) {
    check.require(hk > 0 && hv % hk == 0,
                  fmt::format("expected Hv a multiple of Hk, got Hv={} Hk={}", hv, hk));
}

void check_gdn_width(ShapeCheck& check, std::string_view name, std::int64_t width) {
    check.require(width > 0 && width % 16 == 0,
                  fmt::format("expected {} a multiple of 16, got {}", name, width));
}

void check_conv_weight(ShapeCheck& check, const Weight& conv, std::int64_t channels) {
    check.require(
        conv.format == WeightFormat::kPlain,
        fmt::format("conv: expected a plain weight, got {}", weight_format_name(conv.format)));
    check.require(
        conv.shape == Shape{channels, 4},
        fmt::format("conv: expected shape [{}, 4], got {}", channels, conv.shape.to_string()));
}

} // namespace lr::ops
