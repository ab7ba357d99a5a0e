// SPDX-License-Identifier: Apache-2.0
#include "cpu/gdn/conv.h"

#include "cpu/gdn/gates.h"
#include "cpu/rows.h"

#include <algorithm>

namespace lr::cpu::gdn {

ConvBlock::ConvBlock(const ops::Weight& conv, std::int64_t first, std::int64_t count)
    : first_(first), count_(count) {
    LR_CHECK_LE(count, kConvBlock);
    LR_CHECK(conv.bound());
    std::int64_t part_first = 0;
    for (const ops::WeightPart& part : conv.parts) {
        const std::int64_t begin = std::max(first, part_first);
        const std::int64_t end = std::min(first + count, part_first + part.data.rows());
        for (std::int64_t channel = begin; channel < end; ++channel) {
            std::array<float, kConvTaps> taps;
            load_floats(part.data, channel - part_first, 0, kConvTaps, taps.data());
            for (std::size_t tap = 0; tap < taps.size(); ++tap)
                taps_[tap][static_cast<std::size_t>(channel - first)] = taps[tap];
        }
        part_first += part.data.rows();
    }
    LR_CHECK_EQ(part_first, conv.rows());
}

void ConvBlock::clear() {
    for (Channels& channels : inputs_)
        channels.fill(0.0f);
}

void ConvBlock::load_state(ConstView conv_state, std::int64_t slot) {
    std::array<float, 3 * kConvBlock> state;
    load_floats(conv_state, slot, 3 * first_, 3 * count_, state.data());
    for (std::size_t c = 0; c < static_cast<std::size_t>(count_); ++c)
        for (std::size_t age = 0; age < 3; ++age)
            inputs_[age + 1][c] = state[3 * c + age];
}

void ConvBlock::store_state(View conv_state, std::int64_t slot) const {
    std::array<float, 3 * kConvBlock> state;
    for (std::size_t c = 0; c < static_cast<std::size_t>(count_); ++c)
        for (std::size_t age = 0; age < 3; ++age)
            state[3 * c + age] = inputs_[age + 1][c];
    store_floats(conv_state, slot, 3 * first_, 3 * count_, state.data());
}

void ConvBlock::step(ConstView x, std::int64_t row, float* out) {
    std::rotate(inputs_.begin(), inputs_.begin() + 1, inputs_.end());
    load_floats(x, row, first_, count_, inputs_[3].data());
    for (std::size_t c = 0; c < static_cast<std::size_t>(count_); ++c) {
        float sum = taps_[0][c] * inputs_[0][c];
        sum += taps_[1][c] * inputs_[1][c];
        sum += taps_[2][c] * inputs_[2][c];
        sum += taps_[3][c] * inputs_[3][c];
        out[c] = silu(sum);
    }
}

} // namespace lr::cpu::gdn
