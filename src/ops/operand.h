// SPDX-License-Identifier: Apache-2.0
//
// ops/operand.h: the two operands of a matrix product y = x W^T, as every product op (linear,
// experts_gate_up, experts_down) checks and counts them.
//
// Activations [n, K] say by dtype and scale what they are:
//
//   format       x      scale               value of element (i, k)
//   kPlain       act    absent              x
//   kFp8Token    e4m3   f32 [n]             x * scale[i]
//   kFp8Group    e4m3   f32 [n, ceil K/128]  x * scale[i, k/128]
//   kFp8Static   e4m3   absent; x_global    x * x_global
//   kNvfp4       e2m1   e4m3 [n, K/16]      x * scale[i, k/16] * x_global
//
// Products that exist (the rest is refused by check, with this list):
//
//   activations             weights                      arithmetic, in f32
//   kPlain                  every format                 one dot over K, * factor
//   kFp8Token, kFp8Static   kFp8Channel, kFp8Tensor      dot of codes over K, * (s_x * s_w)
//   kFp8Group               kFp8Block                    one dot over K
//   kNvfp4                  kNvfp4                       dot of e2m1 * e4m3 values (exact) over K,
//                                                        * (x_global * w_global)
//
// A weight row in a dot: kPlain its values; kFp8Block the codes, while x is multiplied by the
// weight's scale of that row and k/128 first, one f32 rounding; kFp8Channel, kFp8Tensor the codes,
// factor = scale or global; kNvfp4 e2m1 * e4m3 (exact), factor = global. A row of x: kFp8Group
// code * scale, one f32 rounding. A backend may multiply the sums of the blocks by their scales
// instead, within the counted bound.
#pragma once

#include "core/dims.h"
#include "ops/op.h"
#include "ops/weight.h"

#include <cstdint>
#include <string_view>

namespace lr::ops {

enum class ActivationFormat : std::uint8_t { kPlain, kFp8Token, kFp8Group, kFp8Static, kNvfp4 };

// "plain", "fp8-token", "fp8-group", "fp8-static", "nvfp4".
std::string_view activation_format_name(ActivationFormat format);

// What x and its scale are. Reads dtypes and ranks only.
ActivationFormat activation_format(ConstView x, ConstView scale);

bool product_supported(ActivationFormat x, WeightFormat w);

// An activation tensor [rows, k] and its scale, named `name` and `name`_scale in errors.
void check_activation(ShapeCheck& check, std::string_view name, ConstView x, ConstView scale,
                      Dim& rows, Dim& k);

// A resident weight [n, k] (a Dim list of 2) or [l, n, k] (3) named "w"; its parts too, when it is
// bound: their dtypes, columns, scales, and that their rows add up.
void check_weight(ShapeCheck& check, const Weight& w, std::initializer_list<DimRef> dims);

// That the product exists.
void check_product(ShapeCheck& check, ActivationFormat x, WeightFormat w);

// `bytes` * part / whole, rounded: a tensor of which a part is moved. 0 when whole is 0.
std::int64_t share_of(double part, std::int64_t whole, std::int64_t bytes);

// What the cost of an expert op assumes: `tokens` rows, each routed uniformly to `per_token` of
// `experts` (of the whole model, not of this rank). tokens == 0: every row of the capacity is live.
struct ExpertLoad {
    std::int64_t tokens = 0;
    std::int32_t per_token = 0;
    std::int32_t experts = 0;

    // Expected live rows and live experts on a rank that holds `local` experts; `capacity` and
    // `local` when tokens == 0.
    double live_rows(std::int64_t local, std::int64_t capacity) const;
    double live_experts(std::int64_t local) const;
};

} // namespace lr::ops
