// SPDX-License-Identifier: Apache-2.0
//
// engine/stored_matrix.h: one matrix of a checkpoint as ops take it, whatever the file's flavor and
// wherever it lies: a whole tensor or one expert of a stack.
#pragma once

#include "checkpoint/quant_format.h"
#include "core/buffer.h"
#include "model/tensor_table.h"
#include "ops/weight.h"

#include <array>
#include <utility>
#include <vector>

namespace lr::engine {

struct StoredMatrix {
    ops::WeightFormat format = ops::WeightFormat::kPlain;
    ConstView data;  // [N, K]; [N] of a vector
    ConstView scale; // as numerics/weight_format.h says
    std::array<float, 2> globals = {1.0f, 1.0f};
    bool halves =
        false; // rows [0, N/2) have globals[0], the others globals[1]; else all globals[0]
};

// Appends rows [first, first + rows) and those columns as parts: one, or one for each half. Rows
// and columns are whole blocks of the format, or end with the matrix (Model's check_shard sees to
// that).
void append_parts(const StoredMatrix& matrix, std::int64_t first, std::int64_t rows,
                  model::ColumnRange columns, std::vector<ops::WeightPart>& parts);

// A quantised part as plain F32 [rows, K]: one f32 operation for each factor, as the dequantisers
// of numerics/quantize.h.
Result<Buffer> widen(ops::WeightFormat format, const ops::WeightPart& part);

// Views into the mapped files, and copies of the few tensors that a file puts at an odd address.
class StoredMatrices {
  public:
    // Matrix `index` of a stack, or 0.
    Result<StoredMatrix> matrix(const checkpoint::StoredWeight& weight, std::int64_t index = 0);
    std::vector<Buffer> take_copies() { return std::move(copies_); }

  private:
    Result<ConstView> aligned_view(const checkpoint::TensorInfo& tensor);

    std::vector<Buffer> copies_;
    std::vector<std::pair<const std::byte*, const std::byte*>> copied_; // from, to
};

} // namespace lr::engine
