// SPDX-License-Identifier: Apache-2.0
//
// cpu/reference/counted.h: a number that counts its roundings.
//
// `value` is what the formula of an op gives (f64, whose own rounding is 2^-29 of an f32 one),
// `error` how far from it an implementation in f32 may be, whatever its order, fused or not. Every
// f32 operation adds one rounding of its result, kUnit of it; a sum adds one for each step of the
// longest way through it; an elementary function kElementary roundings. Storing to a narrower type
// rounds both ends of the interval, so the error of a stored number is zero unless an edge between
// two of its values lies inside, and then it is one step.
//
// Bounds are of the first order: they hold while error is small beside value.
#pragma once

#include "core/dtype.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace lr::cpu::reference {

inline constexpr double kUnit = 0x1p-24;     // half an ulp of f32, relative
inline constexpr double kElementary = 4;     // exp, log1p, pow, sin, cos: 2 ulp
inline constexpr double kFlushed = 0x1p-126; // what a device that flushes subnormals loses

struct Counted {
    double value = 0;
    double error = 0;

    bool exact() const { return error == 0; }
};

// The result of one f32 operation whose operands were off by `error` in all.
inline Counted rounded(double value, double error) {
    if (!std::isfinite(value))
        return {value, 0};
    return {value, error + kUnit * (std::abs(value) + error) + kFlushed};
}

// The same of an operation that IEEE rounds correctly: exact operands whose result is an f32 number
// lose nothing.
inline Counted correctly_rounded(double value, double error) {
    if (error == 0 && value == static_cast<double>(static_cast<float>(value)))
        return {value, 0};
    return rounded(value, error);
}

inline Counted operator+(Counted a, Counted b) {
    return correctly_rounded(a.value + b.value, a.error + b.error);
}
inline Counted operator-(Counted a, Counted b) {
    return correctly_rounded(a.value - b.value, a.error + b.error);
}
inline Counted operator-(Counted a) {
    return {-a.value, a.error};
}
inline Counted operator*(Counted a, Counted b) {
    return correctly_rounded(a.value * b.value, std::abs(a.value) * b.error +
                                                    std::abs(b.value) * a.error +
                                                    a.error * b.error);
}
inline Counted operator/(Counted a, Counted b) {
    const double quotient = a.value / b.value;
    const double least = std::abs(b.value) - b.error;
    return rounded(quotient, (a.error + std::abs(quotient) * b.error) / least);
}
// By a power of two or a sign, or a number that is only compared with: no rounding.
inline Counted exactly(double value) {
    return {value, 0};
}

// An elementary function of value f whose argument's error moves it by `moved` at most.
inline Counted elementary(double f, double moved) {
    return std::isfinite(f)
               ? Counted{f, moved + kElementary * kUnit * (std::abs(f) + moved) + kFlushed}
               : Counted{f, 0};
}
inline Counted exp(Counted x) {
    const double e = std::exp(x.value);
    return elementary(e, e * std::expm1(x.error));
}
inline Counted sqrt(Counted x) {
    const double root = std::sqrt(x.value);
    return rounded(root, x.error == 0 ? 0 : x.error / (2 * std::sqrt(x.value - x.error)));
}
inline Counted sigmoid(Counted x) {
    return exactly(1) / (exactly(1) + exp(-x));
}
inline Counted silu(Counted x) {
    return x / (exactly(1) + exp(-x));
}
// x > 20 ? x : log1p(exp(x)); its slope is below 1.
inline Counted softplus(Counted x) {
    if (x.value > 20)
        return x;
    const Counted e = exp(x);
    return elementary(std::log1p(e.value), e.error / (1 + e.value));
}

// What `steps` f32 additions one after the other lose of the sum of the magnitudes.
inline double sum_loss(double steps) {
    return steps * kUnit / (1 - steps * kUnit);
}
// Steps of the longest way through a dot product: of the fixed tree of cpu/kernels/kernels.h (16
// lanes of fused steps, then halves), with one to spare for a product that is rounded by itself. An
// accumulator of a matrix instruction takes 16 products or more a step and so no longer way.
inline double tree_steps(std::int64_t count) {
    return static_cast<double>((count + 15) / 16 + 5);
}
// Of a chain in ascending order.
inline double chain_steps(std::int64_t count) {
    return static_cast<double>(count + 1);
}

// A sum of products, term by term.
class Dot {
  public:
    void add(Counted a, Counted b) {
        const double product = a.value * b.value;
        value_ += product;
        magnitude_ += std::abs(product);
        error_ += std::abs(a.value) * b.error + std::abs(b.value) * a.error + a.error * b.error;
    }
    Counted sum(double steps) const {
        if (!std::isfinite(value_))
            return {value_, 0};
        return {value_, error_ + sum_loss(steps) * (magnitude_ + error_) + kFlushed};
    }

  private:
    double value_ = 0, magnitude_ = 0, error_ = 0;
};

// Rounded to a type: value and error are those of what is stored. f32, bf16, f16, e4m3, e2m1, f64.
Counted stored(Counted x, DType dtype);

// The nearest value of a type, ties to even, saturating where the type does.
double nearest(double x, DType dtype);

} // namespace lr::cpu::reference
