// SPDX-License-Identifier: Apache-2.0
#include "verify/faults.h"

#include "numerics/bf16.h"
#include "numerics/e2m1.h"
#include "numerics/e4m3.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace lr::verify {
namespace {

constexpr std::array<std::string_view, 7> kNames = {"element", "row", "swap", "nan",
                                                    "stale",   "id",  "pad"};

bool is_number(DType dtype) {
    return is_float(dtype) || dtype == DType::kF64 || dtype == DType::kE4M3 ||
           dtype == DType::kE2M1;
}

double get(View v, std::int64_t i) {
    switch (v.dtype) {
    case DType::kF32:
        return v.as<float>()[i];
    case DType::kF64:
        return v.as<double>()[i];
    case DType::kBF16:
        return numerics::decode_bf16(v.as<std::uint16_t>()[i]);
    case DType::kE4M3:
        return numerics::decode_e4m3(v.as<std::uint8_t>()[i]);
    case DType::kE2M1:
        return numerics::decode_e2m1(numerics::unpack_e2m1(v.as<std::uint8_t>(), i));
    case DType::kI32:
        return v.as<std::int32_t>()[i];
    case DType::kU16:
        return v.as<std::uint16_t>()[i];
    default:
        return 0;
    }
}

void put(View v, std::int64_t i, double x) {
    const auto single = static_cast<float>(x);
    switch (v.dtype) {
    case DType::kF32:
        v.as<float>()[i] = single;
        return;
    case DType::kF64:
        v.as<double>()[i] = x;
        return;
    case DType::kBF16:
        v.as<std::uint16_t>()[i] = numerics::encode_bf16(single);
        return;
    case DType::kE4M3:
        v.as<std::uint8_t>()[i] = numerics::encode_e4m3(single);
        return;
    case DType::kE2M1: {
        std::uint8_t& byte = v.as<std::uint8_t>()[i / 2];
        const std::uint8_t code = numerics::encode_e2m1(single);
        byte = i % 2 == 0 ? numerics::pack_e2m1(code, byte >> 4)
                          : numerics::pack_e2m1(byte & 0xF, code);
        return;
    }
    case DType::kI32:
        v.as<std::int32_t>()[i] = static_cast<std::int32_t>(x);
        return;
    case DType::kU16:
        v.as<std::uint16_t>()[i] = static_cast<std::uint16_t>(x);
        return;
    default:
        return;
    }
}

std::string place(const Shape& shape, std::int64_t index) {
    std::string text;
    for (int d = shape.rank() - 1; d >= 0; --d) {
        text = fmt::format("{}{}{}", index % shape[d], text.empty() ? "" : ", ", text);
        index /= shape[d];
    }
    return "[" + text + "]";
}

class Saboteur {
  public:
    Saboteur(View tensor, std::span<const std::byte> before, const double* bound)
        : tensor_(tensor),
          before_(const_cast<std::byte*>(before.data()), tensor.dtype, tensor.shape), bound_(bound),
          count_(tensor.shape.count()),
          width_(std::max<std::int64_t>(1, tensor.shape.row_count())) {}

    std::optional<std::string> element() {
        if (!is_number(tensor_.dtype))
            return {};
        // The middle one of those that the launch wrote with a value.
        const std::int64_t i = nth_written(written() / 2);
        if (i < 0)
            return {};
        const double x = get(tensor_, i), by = 4 * allowed(i);
        double step = std::max(std::abs(x) * 0x1p-7, 1e-30);
        double wrong = x;
        for (int tries = 0; tries < 200 && !(std::abs(wrong - x) > by); ++tries, step *= 2) {
            put(tensor_, i, x > 0 ? x - by - step : x + by + step);
            wrong = get(tensor_, i);
        }
        return std::abs(wrong - x) > by ? std::optional(place(tensor_.shape, i)) : std::nullopt;
    }

    std::optional<std::string> row(bool stale) {
        const std::int64_t i = nth_written(written() / 2);
        if (i < 0)
            return {};
        const std::int64_t first = i / width_ * width_;
        bool seen = false;
        for (std::int64_t j = first; j < first + width_; ++j) {
            const double now = get(tensor_, j), then = stale ? get(before_, j) : 0.0;
            seen = seen || std::abs(now - then) > allowed(j);
            put(tensor_, j, then);
        }
        return seen ? std::optional(fmt::format("row {}", first / width_)) : std::nullopt;
    }

    std::optional<std::string> swap() {
        for (std::int64_t i = 0; i + 1 < count_; ++i) {
            const double a = get(tensor_, i), b = get(tensor_, i + 1);
            if (!wrote(i) || !wrote(i + 1) || !(std::abs(a - b) > allowed(i) + allowed(i + 1)))
                continue;
            put(tensor_, i, b);
            put(tensor_, i + 1, a);
            return place(tensor_.shape, i);
        }
        return {};
    }

    std::optional<std::string> nan() {
        const std::int64_t i = nth_written(written() / 2);
        if (!is_number(tensor_.dtype) || tensor_.dtype == DType::kE2M1 || i < 0)
            return {};
        put(tensor_, i, NAN);
        return place(tensor_.shape, i);
    }

    std::optional<std::string> id() {
        const std::int64_t i = nth_written(written() / 2);
        if (is_number(tensor_.dtype) || i < 0)
            return {};
        put(tensor_, i, get(tensor_, i) + 1);
        return place(tensor_.shape, i);
    }

    // The last row that the launch left as it was, or zero.
    std::optional<std::string> pad() {
        for (std::int64_t i = count_ - 1; i >= 0; --i) {
            if (wrote(i))
                continue;
            put(tensor_, i, get(tensor_, i) == 1 ? 2 : 1);
            return place(tensor_.shape, i);
        }
        return {};
    }

  private:
    double allowed(std::int64_t i) const { return bound_ ? bound_[i] : 0.0; }
    // Elements that changed and are not the zeros of padding.
    bool wrote(std::int64_t i) const {
        const double x = get(tensor_, i);
        return x != get(before_, i) && (x != 0 || !is_number(tensor_.dtype));
    }
    std::int64_t written() const {
        std::int64_t found = 0;
        for (std::int64_t i = 0; i < count_; ++i)
            found += wrote(i);
        return found;
    }
    std::int64_t nth_written(std::int64_t n) const {
        for (std::int64_t i = 0; i < count_; ++i)
            if (wrote(i) && n-- == 0)
                return i;
        return -1;
    }

    View tensor_, before_;
    const double* bound_;
    std::int64_t count_, width_;
};

} // namespace

std::string_view fault_name(Fault fault) {
    return kNames[static_cast<std::size_t>(fault)];
}

std::optional<Fault> fault_from_name(std::string_view name) {
    for (Fault fault : kFaults)
        if (fault_name(fault) == name)
            return fault;
    return {};
}

std::optional<std::string> put_fault(Fault fault, View tensor, std::span<const std::byte> before,
                                     const double* bound) {
    Saboteur saboteur(tensor, before, bound);
    switch (fault) {
    case Fault::kElement:
        return saboteur.element();
    case Fault::kRow:
        return saboteur.row(false);
    case Fault::kSwap:
        return saboteur.swap();
    case Fault::kNan:
        return saboteur.nan();
    case Fault::kStale:
        return saboteur.row(true);
    case Fault::kId:
        return saboteur.id();
    case Fault::kPad:
        return saboteur.pad();
    }
    return {};
}

} // namespace lr::verify
