// SPDX-License-Identifier: Apache-2.0
//
// tests/numerics/codec_oracle.h: a slow, independent definition of the small float formats. Values
// come from ldexp on the three fields; rounding is a search over all values in double, ties to the
// even code, everything beyond the largest value saturating or overflowing as the format says.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace lr::numerics {

// Magnitudes of a format by code (without sign): codes 0 .. finite_codes - 1.
inline std::vector<double> oracle_magnitudes(int mantissa_bits, int bias, int finite_codes) {
    std::vector<double> values;
    const int per_binade = 1 << mantissa_bits;
    for (int code = 0; code < finite_codes; ++code) {
        const int exponent = code / per_binade;
        const int mantissa = code % per_binade;
        const bool subnormal = exponent == 0;
        const double significand = (subnormal ? 0.0 : 1.0) + double(mantissa) / per_binade;
        values.push_back(std::ldexp(significand, (subnormal ? 1 : exponent) - bias));
    }
    return values;
}

inline std::vector<double> e4m3_magnitudes() {
    return oracle_magnitudes(3, 7, 0x7F);
}
inline std::vector<double> e2m1_magnitudes() {
    return oracle_magnitudes(1, 1, 8);
}
inline std::vector<double> f16_magnitudes() {
    return oracle_magnitudes(10, 15, 0x7C00);
}

// Code (without sign) of the value nearest to |x|; x finite or infinite, not NaN. Beyond the
// largest value it saturates.
inline int oracle_nearest(const std::vector<double>& magnitudes, double x) {
    const double a = std::fabs(x);
    const auto above = std::lower_bound(magnitudes.begin(), magnitudes.end(), a);
    if (above == magnitudes.end())
        return static_cast<int>(magnitudes.size()) - 1;
    const int high = static_cast<int>(above - magnitudes.begin());
    if (high == 0)
        return 0;
    const double to_high = magnitudes[static_cast<std::size_t>(high)] - a;
    const double to_low = a - magnitudes[static_cast<std::size_t>(high - 1)];
    if (to_high == to_low)
        return high % 2 == 0 ? high : high - 1;
    return to_high < to_low ? high : high - 1;
}

// What an encoder must be asked: every value, every midpoint, and the floats next to each, with
// both signs.
inline std::vector<float> oracle_probes(const std::vector<double>& magnitudes) {
    std::vector<float> probes;
    const float infinity = std::numeric_limits<float>::infinity();
    auto add = [&](double centre) {
        const float c = static_cast<float>(centre);
        for (float f : {c, std::nextafter(c, infinity), std::nextafter(c, -infinity)}) {
            probes.push_back(f);
            probes.push_back(-f);
        }
    };
    for (std::size_t i = 0; i < magnitudes.size(); ++i) {
        add(magnitudes[i]);
        if (i + 1 < magnitudes.size())
            add((magnitudes[i] + magnitudes[i + 1]) / 2);
    }
    for (double extra : {0.0, 1e-45, 1e-38, 1e30, 3.4e38})
        add(extra);
    probes.push_back(infinity);
    probes.push_back(-infinity);
    return probes;
}

} // namespace lr::numerics
