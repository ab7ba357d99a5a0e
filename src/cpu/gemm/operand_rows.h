// SPDX-License-Identifier: Apache-2.0
//
// cpu/gemm/operand_rows.h: rows of the two operands of a product as a dot reads them, activations
// in f32 and weights as they lie in memory, and what multiplies the dot afterwards (ops/operand.h
// has the table). The one place that knows how a weight or activation format is laid out.
#pragma once

#include "cpu/kernels/bf16_dot.h"
#include "cpu/kernels/kernels.h"
#include "ops/operand.h"

#include <cstdint>
#include <optional>
#include <span>

namespace lr::cpu {

// Consecutive rows of a weight as a dot reads them: of one part, and of one row of block scales
// where the format has those.
struct WeightRun {
    Codes codes = Codes::kF32;
    std::int64_t rows = 0;
    const std::byte* data = nullptr;      // first row
    std::int64_t stride = 0;              // bytes
    const std::uint8_t* scales = nullptr; // kNvfp4: of the first row
    std::int64_t scale_stride = 0;
    ConstView block_scales; // kFp8Block: [1, ceil K/128], for all rows
};

class WeightRows {
  public:
    explicit WeightRows(const ops::Weight& w);             // [N, K]
    WeightRows(const ops::Weight& w, std::int64_t expert); // expert's [N, K] of [L, N, K]

    std::int64_t rows() const { return rows_; }
    std::int64_t columns() const { return columns_; }
    // How x must be given to a dot with these codes (cpu/kernels/kernels.h).
    float lift() const { return is_fp8_ ? kE4M3Lift : 1.0f; }
    // Codes of kBF16, kE4M3 and kNvfp4 (its scales apart) are numbers of bf16.
    bool exact_in_bf16() const;
    // The codes of all rows, if they are the same.
    std::optional<Codes> codes() const;

    // The longest run from row j on, at most `count` rows.
    WeightRun run(std::int64_t j, std::int64_t count) const;
    // What is left of row j's scale: channel scale or global; 1 for kPlain and kFp8Block.
    float factor(std::int64_t j) const;

  private:
    struct Place {
        const ops::WeightPart* part;
        std::int64_t row; // within the part
    };
    Place place(std::int64_t j) const;

    ops::WeightFormat format_;
    bool is_fp8_ = false;
    std::span<const ops::WeightPart> parts_;
    std::int64_t rows_ = 0;
    std::int64_t columns_ = 0;
};

// Rows of x, optionally through a map: row r is x[row_map[r] / per_token].
class ActivationRows {
  public:
    ActivationRows(ConstView x, ConstView scale, float global);
    ActivationRows(ConstView x, ConstView scale, float global, ConstView row_map,
                   std::int32_t per_token);

    std::int64_t columns() const { return x_.shape[1]; }

    // out[K] = row r times `lift`, a power of two: values, codes (kFp8Token, kFp8Static), code *
    // group scale rounded to f32 (kFp8Group), or e2m1 * block scale (kNvfp4, exact).
    void decode(std::int64_t r, float lift, float* out) const;
    // Token or static scale, NVFP4 global; 1 for kPlain and kFp8Group.
    float factor(std::int64_t r) const;

    // Values or codes (times NVFP4 block scales) are numbers of bf16: all but f32 and f16 values.
    bool exact_in_bf16() const;
    // Row r as a dot with these codes takes it (cpu/kernels/bf16_dot.h), without group scales. On
    // sets that have Kernels::bf16.
    void pack(std::int64_t r, Codes order, std::uint16_t* packed) const;
    // Rows that pack() has made for all codes of a product, `stride` numbers apart; or none.
    struct Packed {
        const std::uint16_t* rows = nullptr;
        std::int64_t stride = 0;
    };
    void share(Packed packed) { packed_ = packed; }
    const Packed& packed() const { return packed_; }
    // kFp8Group: scales[b] *= that of row r's group b; else nothing.
    void multiply_group_scales(std::int64_t r, std::int64_t groups, float* scales) const;
    bool has_group_scales() const { return format_ == ops::ActivationFormat::kFp8Group; }

  private:
    std::int64_t source(std::int64_t r) const;

    ConstView x_;
    ConstView scale_;
    ConstView row_map_;
    ops::ActivationFormat format_;
    float global_;
    std::int32_t per_token_ = 1;
    Packed packed_;
};

} // namespace lr::cpu
