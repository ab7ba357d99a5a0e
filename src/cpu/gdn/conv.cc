// SPDX-License-Identifier: Apache-2.0
#include "cpu/gdn/conv.h"

#include "cpu/activation.h"
#include "cpu/rows.h"

#include <algorithm>

namespace lr::cpu::gdn {

ConvBlock::ConvBlock(const ops::Weight& conv, std::int64_t first, std::int64_t count)
    : first_(first), count_(count) {
    LR_CHECK_LE(count, kConvBlock);
    LR_CHECK(conv.bound());
    std::int64_t part_first = 0;
    for (const ops::WeightPart& part : conv.parts) {
        LR_CHECK_EQ(part.data.row_stride, static_cast<std::int64_t>(kConvTaps));
        const std::int64_t begin = std::max(first, part_first);
        const std::int64_t end = std::min(first + count, part_first + part.data.rows());
        std::array<float, kConvTaps * kConvBlock> taps;
        if (begin < end)
            load_floats(part.data, begin - part_first, 0, kConvTaps * (end - begin), taps.data());
        for (std::int64_t channel = begin; channel < end; ++channel)
            for (std::size_t tap = 0; tap < kConvTaps; ++tap)
                taps_[tap][static_cast<std::size_t>(channel - first)] =
                    taps[static_cast<std::size_t>((channel - begin) * kConvTaps) + tap];
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
            inputs_[(oldest_ + age + 1) % kConvTaps][c] = state[3 * c + age];
}

void ConvBlock::store_state(View conv_state, std::int64_t slot) const {
    std::array<float, 3 * kConvBlock> state;
    for (std::size_t c = 0; c < static_cast<std::size_t>(count_); ++c)
        for (std::size_t age = 0; age < 3; ++age)
            state[3 * c + age] = input(age + 1)[c];
    store_floats(conv_state, slot, 3 * first_, 3 * count_, state.data());
}

void ConvBlock::step(ConstView x, std::int64_t row, float* out) {
    load_floats(x, row, first_, count_, inputs_[oldest_].data());
    oldest_ = (oldest_ + 1) % kConvTaps;
    const Channels &a = input(0), &b = input(1), &d = input(2), &e = input(3);
    Channels sums;
    for (std::size_t c = 0; c < kConvBlock; ++c) { // all of them: a count that compilers know
        float sum = taps_[0][c] * a[c];
        sum += taps_[1][c] * b[c];
        sum += taps_[2][c] * d[c];
        sums[c] = sum + taps_[3][c] * e[c];
    }
    silu_each(sums.data(), count_, out);
}

} // namespace lr::cpu::gdn
