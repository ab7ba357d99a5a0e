// SPDX-License-Identifier: Apache-2.0
//
// cpu/gdn/conv.h: the causal convolution of a block of channels, shared by prefill and decode.
#pragma once

#include "core/view.h"
#include "ops/weight.h"

#include <array>
#include <cstdint>

namespace lr::cpu::gdn {

inline constexpr std::size_t kConvTaps = 4;
inline constexpr std::int64_t kConvBlock = 64; // channels that a thread takes at a time

// A block of channels on its way through a sequence: the taps, and the last four inputs.
class ConvBlock {
  public:
    // Channels [first, first + count), count <= kConvBlock.
    ConvBlock(const ops::Weight& conv, std::int64_t first, std::int64_t count);

    // The three inputs before the next one: zero, or a slot's.
    void clear();
    void load_state(ConstView conv_state, std::int64_t slot);
    void store_state(View conv_state, std::int64_t slot) const;

    // Takes row `row` of x (its columns [first, first + count)) as the next input; out[c] becomes
    // SiLU of the convolution, in f32.
    void step(ConstView x, std::int64_t row, float* out);

  private:
    using Channels = std::array<float, kConvBlock>;
    const Channels& input(std::size_t age) const { return inputs_[(oldest_ + age) % kConvTaps]; }

    std::int64_t first_;
    std::int64_t count_;
    std::array<Channels, kConvTaps> taps_{};   // oldest input first
    std::array<Channels, kConvTaps> inputs_{}; // a ring
    std::size_t oldest_ = 0;
};

} // namespace lr::cpu::gdn
