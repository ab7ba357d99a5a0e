// SPDX-License-Identifier: Apache-2.0
//
// cpu/gemm/operand_rows.h: rows of the two operands of a product as the f32 values that a dot
// reads, and what multiplies the dot afterwards (ops/operand.h has the table). The one place that
// knows how a weight or activation format is laid out.
#pragma once

#include "ops/operand.h"

#include <cstdint>
#include <span>

namespace lr::cpu {

// Whether block scales are inside the decoded values or applied per 128 columns by the product.
enum class BlockScales { kInValues, kApart };

class WeightRows {
  public:
    explicit WeightRows(const ops::Weight& w);             // [N, K]
    WeightRows(const ops::Weight& w, std::int64_t expert); // expert's [N, K] of [L, N, K]

    std::int64_t rows() const { return rows_; }
    std::int64_t columns() const { return columns_; }

    // out[K] = row j; BlockScales matter to kFp8Block alone.
    void decode(std::int64_t j, BlockScales scales, float* out) const;
    // out[count] = columns [first, first + count) of row j of a plain weight.
    void decode_plain(std::int64_t j, std::int64_t first, std::int64_t count, float* out) const;
    // What is left of row j's scale: channel scale or global; 1 for kPlain and kFp8Block.
    float factor(std::int64_t j) const;
    // kFp8Block: out[b] = scale of columns [128*b, 128*b + 128) of row j, ceil K/128 of them.
    void block_scales(std::int64_t j, float* out) const;

  private:
    struct Place {
        const ops::WeightPart* part;
        std::int64_t row; // within the part
    };
    Place place(std::int64_t j) const;

    ops::WeightFormat format_;
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
    // kApart for kFp8Group, else kInValues.
    BlockScales scales() const;

    // out[K] = row r: values, codes, or NVFP4 code * block scale.
    void decode(std::int64_t r, float* out) const;
    // Token or static scale, NVFP4 global; 1 for kPlain and kFp8Group.
    float factor(std::int64_t r) const;
    // kFp8Group: out[b] = scale of columns [128*b, 128*b + 128), ceil K/128 of them.
    void block_scales(std::int64_t r, float* out) const;

  private:
    std::int64_t source(std::int64_t r) const;

    ConstView x_;
    ConstView scale_;
    ConstView row_map_;
    ops::ActivationFormat format_;
    float global_;
    std::int32_t per_token_ = 1;
};

} // namespace lr::cpu
