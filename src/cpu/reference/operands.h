// SPDX-License-Identifier: Apache-2.0
//
// cpu/reference/operands.h: the operands of products as the tables of ops/operand.h and
// numerics/weight_format.h define them, element by element; and the quantisers of
// numerics/quantize.h as its header states them.
#pragma once

#include "cpu/reference/tensors.h"
#include "ops/operand.h"

namespace lr::cpu::reference {

// Row r of an activation tensor, decoded: scales multiplied in. inexact: the most roundings that an
// implementation makes on the way of one element (its scales; none for plain rows).
class ActivationRow {
  public:
    ActivationRow(ConstView x, ConstView scale, float global, const Errors& errors);
    void load(std::int64_t row, std::vector<Counted>& out) const;
    bool scaled() const { return format_ != ops::ActivationFormat::kPlain; }

  private:
    Counted scale_of(std::int64_t row, std::int64_t k) const;
    In x_, scale_;
    ops::ActivationFormat format_;
    float global_;
};

// Row j of a weight, or of one expert of a stack (expert -1: a linear).
class WeightRow {
  public:
    WeightRow(const ops::Weight& w, std::int64_t expert);
    void load(std::int64_t row, std::vector<double>& out) const;
    bool scaled() const { return w_.format != ops::WeightFormat::kPlain; }

  private:
    const ops::Weight& w_;
    std::span<const ops::WeightPart> parts_;
};

// x . w with the roundings of both operands' scales.
Counted product(const std::vector<Counted>& x, const std::vector<double>& w, bool scaled,
                double steps);

// Row `row` of codes and scales from the values x. `global`: the static scale of FP8, the encode
// multiplier G of NVFP4.
void quantise_row(const std::vector<Counted>& x, std::int64_t row, View q, View scale, float global,
                  Errors& errors);

} // namespace lr::cpu::reference
