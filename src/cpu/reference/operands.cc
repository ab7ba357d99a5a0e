// SPDX-License-Identifier: Apache-2.0
#include "cpu/reference/operands.h"

#include "numerics/quantize.h"

namespace lr::cpu::reference {
namespace {

using ops::ActivationFormat;
using ops::WeightFormat;

// An interval of f32 numbers, its ends as numerics/quantize.h computes them, and the nominal one.
struct Range {
    float low, value, high;
};

Range range_of(Counted x) {
    return {static_cast<float>(x.value - x.error), static_cast<float>(x.value),
            static_cast<float>(x.value + x.error)};
}

// The largest magnitude; NaN when an element is.
Range absolute_max(const std::vector<Counted>& x, std::int64_t first, std::int64_t count) {
    Range top{0, 0, 0};
    for (std::int64_t i = first; i < first + count; ++i) {
        const Counted& v = x[static_cast<std::size_t>(i)];
        if (std::isnan(v.value))
            return {NAN, NAN, NAN};
        const double size = std::abs(v.value);
        top.low = std::max(top.low, static_cast<float>(size - v.error));
        top.value = std::max(top.value, static_cast<float>(size));
        top.high = std::max(top.high, static_cast<float>(size + v.error));
    }
    return top;
}

template <typename F> Range mapped(Range x, F function) {
    return {function(x.low), function(x.value), function(x.high)};
}

Counted counted(Range x) {
    if (!std::isfinite(x.value))
        return {x.value, 0};
    return {x.value, std::max(double{x.high} - x.value, double{x.value} - x.low)};
}

// x / d for every x and d of their ranges, d > 0.
Counted quotient(Counted x, Range d) {
    const Range r = range_of(x);
    const float value = r.value / d.value;
    if (!std::isfinite(value))
        return {value, 0};
    const float low = std::min(r.low / d.low, r.low / d.high);
    const float high = std::max(r.high / d.low, r.high / d.high);
    return counted({low, value, high});
}

// Codes of `count` elements that share d. A quotient that is zero by definition gives code 0.
void put_codes(const std::vector<Counted>& x, std::int64_t first, std::int64_t count, Range d,
               bool zero, std::int64_t row, Out& q) {
    for (std::int64_t i = first; i < first + count; ++i)
        q.set(row, i, zero ? Counted{} : quotient(x[static_cast<std::size_t>(i)], d));
}

float fp8_scale(float amax) {
    return (std::isnan(amax) || amax > numerics::kTiny ? amax : numerics::kTiny) / 448.0f;
}

void quantise_nvfp4(const std::vector<Counted>& x, std::int64_t row, Out& q, View scale, float g,
                    Errors& errors) {
    Out sf_out(scale, errors);
    for (std::int64_t b = 0; b < sf_out.columns(); ++b) {
        const std::int64_t first = b * numerics::kNvfp4Block;
        const Range amax = absolute_max(x, first, numerics::kNvfp4Block);
        if (!std::isfinite(amax.value)) {
            sf_out.set(row, b, exactly(NAN));
            for (std::int64_t i = 0; i < numerics::kNvfp4Block; ++i)
                q.set(row, first + i, exactly(6)); // code 7
            continue;
        }
        const Range wanted = mapped(amax, [g](float a) { return g * (a / 6.0f); });
        const Range sf =
            mapped(wanted, [](float s) { return static_cast<float>(nearest(s, DType::kE4M3)); });
        sf_out.set(row, b, counted(wanted));
        put_codes(x, first, numerics::kNvfp4Block, mapped(sf, [g](float s) { return s / g; }),
                  sf.value == 0, row, q);
    }
}

} // namespace

ActivationRow::ActivationRow(ConstView x, ConstView scale, float global, const Errors& errors)
    : x_(x, errors), scale_(scale, errors), format_(ops::activation_format(x, scale)),
      global_(global) {}

Counted ActivationRow::scale_of(std::int64_t row, std::int64_t k) const {
    switch (format_) {
    case ActivationFormat::kPlain:
        return exactly(1);
    case ActivationFormat::kFp8Token:
        return scale_.at(row, 0);
    case ActivationFormat::kFp8Group:
        return scale_.at(row, k / numerics::kFp8Group);
    case ActivationFormat::kFp8Static:
        return exactly(global_);
    case ActivationFormat::kNvfp4: {
        const Counted sf = scale_.at(row, k / numerics::kNvfp4Block);
        return {sf.value * global_, sf.error * global_};
    }
    }
    return exactly(1);
}

void ActivationRow::load(std::int64_t row, std::vector<Counted>& out) const {
    x_.load(row, 0, x_.columns(), out);
    if (format_ == ActivationFormat::kPlain)
        return;
    for (std::int64_t k = 0; k < x_.columns(); ++k) {
        Counted& x = out[static_cast<std::size_t>(k)];
        const Counted s = scale_of(row, k);
        x = {x.value * s.value,
             std::abs(x.value) * s.error + std::abs(s.value) * x.error + x.error * s.error};
    }
}

WeightRow::WeightRow(const ops::Weight& w, std::int64_t expert) : w_(w), parts_(w.parts) {
    if (expert < 0)
        return;
    const std::size_t each = w.parts.size() / static_cast<std::size_t>(w.shape[0]);
    parts_ = w.parts.subspan(static_cast<std::size_t>(expert) * each, each);
}

void WeightRow::load(std::int64_t row, std::vector<double>& out) const {
    std::size_t p = 0;
    while (row >= parts_[p].data.rows())
        row -= parts_[p++].data.rows();
    const ops::WeightPart& part = parts_[p];
    const Errors none;
    const In data(part.data, none), scale(part.scale, none);
    out.resize(static_cast<std::size_t>(w_.columns()));
    for (std::int64_t k = 0; k < w_.columns(); ++k) {
        double value = data.at(row, k).value;
        switch (w_.format) {
        case WeightFormat::kPlain:
            break;
        case WeightFormat::kFp8Block:
            value *= scale.at(row / numerics::kFp8Block, k / numerics::kFp8Block).value;
            break;
        case WeightFormat::kFp8Channel:
            value *= scale.at(row, 0).value;
            break;
        case WeightFormat::kFp8Tensor:
            value *= part.global;
            break;
        case WeightFormat::kNvfp4:
            value *= scale.at(row, k / numerics::kNvfp4Block).value * part.global;
            break;
        }
        out[static_cast<std::size_t>(k)] = value;
    }
}

Counted product(const std::vector<Counted>& x, const std::vector<double>& w, bool scaled,
                double steps) {
    // Scales: one rounding where each is multiplied in, one where two of them are.
    constexpr double kScaleRoundings = 3;
    Dot dot;
    for (std::size_t k = 0; k < x.size(); ++k)
        dot.add(x[k], exactly(w[k]));
    return dot.sum(steps + (scaled ? kScaleRoundings : 0));
}

void quantise_row(const std::vector<Counted>& x, std::int64_t row, View q, View scale, float global,
                  Errors& errors) {
    Out codes(q, errors);
    const ActivationFormat format = ops::activation_format(q, scale);
    if (format == ActivationFormat::kNvfp4)
        return quantise_nvfp4(x, row, codes, scale, global, errors);
    const auto width = std::ssize(x);
    if (format == ActivationFormat::kFp8Static)
        return put_codes(x, 0, width, {global, global, global}, false, row, codes);
    Out scales(scale, errors);
    const std::int64_t group = format == ActivationFormat::kFp8Group ? numerics::kFp8Group : width;
    for (std::int64_t first = 0; first < width; first += group) {
        const std::int64_t count = std::min(group, width - first);
        const Range s = mapped(absolute_max(x, first, count), fp8_scale);
        scales.set(row, first / group, counted(s));
        put_codes(x, first, count, s, false, row, codes);
    }
}

} // namespace lr::cpu::reference
