// SPDX-License-Identifier: Apache-2.0
#include "verify/compare.h"

#include "numerics/bf16.h"
#include "numerics/e2m1.h"
#include "numerics/e4m3.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace lr::verify {
namespace {

struct Element {
    double value;       // of floats and codes
    std::int64_t whole; // of integers; the bits of codes
};

Element element(ConstView view, std::int64_t i) {
    switch (view.dtype) {
    case DType::kF32:
        return {view.as<float>()[i], 0};
    case DType::kF64:
        return {view.as<double>()[i], 0};
    case DType::kBF16:
        return {numerics::decode_bf16(view.as<std::uint16_t>()[i]), 0};
    case DType::kE4M3:
        return {numerics::decode_e4m3(view.as<std::uint8_t>()[i]), view.as<std::uint8_t>()[i]};
    case DType::kE2M1: {
        const std::uint8_t code = numerics::unpack_e2m1(view.as<std::uint8_t>(), i);
        return {numerics::decode_e2m1(code), code};
    }
    case DType::kI32:
        return {0, view.as<std::int32_t>()[i]};
    case DType::kI64:
        return {0, view.as<std::int64_t>()[i]};
    case DType::kU16:
        return {0, view.as<std::uint16_t>()[i]};
    default:
        LR_CHECK(view.dtype == DType::kU8 || view.dtype == DType::kUE8M0);
        return {0, view.as<std::uint8_t>()[i]};
    }
}

bool is_code(DType dtype) {
    return dtype == DType::kE4M3 || dtype == DType::kE2M1;
}
bool is_number(DType dtype) {
    return is_float(dtype) || dtype == DType::kF64 || is_code(dtype);
}

std::string text_of(DType dtype, Element e) {
    if (is_code(dtype))
        return fmt::format("{:.7g} (code {:#04x})", e.value, e.whole);
    return is_number(dtype) ? fmt::format("{:.9g}", e.value) : fmt::format("{}", e.whole);
}

std::vector<std::int64_t> coordinate(const Shape& shape, std::int64_t index) {
    std::vector<std::int64_t> at(static_cast<std::size_t>(shape.rank()));
    for (int d = shape.rank() - 1; d >= 0; --d) {
        at[static_cast<std::size_t>(d)] = index % shape[d];
        index /= shape[d];
    }
    return at;
}

Mismatch difference_at(ConstView reference, ConstView device, std::int64_t i,
                       std::string expected) {
    return {coordinate(reference.shape, i), text_of(reference.dtype, element(reference, i)),
            text_of(device.dtype, element(device, i)), std::move(expected)};
}

// The first place where one is NaN or infinite and the other is not so.
std::optional<Mismatch> mask_mismatch(ConstView reference, ConstView device) {
    for (std::int64_t i = 0; i < reference.shape.count(); ++i) {
        const double a = element(reference, i).value, b = element(device, i).value;
        if (std::isnan(a) == std::isnan(b) && (std::isnan(a) || std::isinf(a) == std::isinf(b)))
            continue;
        return difference_at(reference, device, i,
                             std::isnan(a)   ? "a NaN"
                             : std::isinf(a) ? "an infinity"
                                             : "finite");
    }
    return {};
}

} // namespace

void Agreement::add(const Agreement& other) {
    elements += other.elements;
    bounded += other.bounded;
    apart += other.apart;
    largest_share = std::max(largest_share, other.largest_share);
    largest_bound = std::max(largest_bound, other.largest_bound);
    if (!first)
        first = other.first;
}

Agreement compare(ConstView reference, ConstView device, const double* bound) {
    Agreement result;
    result.elements = reference.shape.count();
    const bool number = is_number(reference.dtype), code = is_code(reference.dtype);
    if (number)
        result.first = mask_mismatch(reference, device);
    double squares = 0, widest = 0;
    for (std::int64_t i = 0; i < result.elements; ++i) {
        const Element a = element(reference, i), b = element(device, i);
        const double allowed = bound ? bound[i] : 0.0;
        double apart = number ? std::abs(a.value - b.value) : a.whole != b.whole;
        if (number && (!std::isfinite(a.value) || !std::isfinite(b.value)))
            apart =
                a.value == b.value || (std::isnan(a.value) && std::isnan(b.value)) ? 0 : INFINITY;
        if (code && allowed == 0 && a.whole != b.whole)
            apart = INFINITY;
        if (std::isfinite(a.value))
            squares += a.value * a.value;
        widest = std::max(widest, allowed);
        if (allowed > 0) {
            ++result.bounded;
            result.apart += apart > 0;
            result.largest_share = std::max(result.largest_share, apart / allowed);
        }
        // The sum of two f64 numbers that make up the bound is itself rounded.
        if (apart > allowed * (1 + 1e-9) && !result.first)
            result.first =
                difference_at(reference, device, i,
                              allowed == 0 ? "equal" : fmt::format("within {:.3g}", allowed));
    }
    const double rms =
        std::sqrt(squares / static_cast<double>(std::max<std::int64_t>(1, result.elements)));
    result.largest_bound = rms > 0 ? widest / rms : 0;
    return result;
}

} // namespace lr::verify
