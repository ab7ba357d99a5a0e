// SPDX-License-Identifier: Apache-2.0
//
// cpu/reference/tensors.h: how the reference reads and writes tensors, with what it knows of the
// error of each element.
#pragma once

#include "core/view.h"
#include "cpu/reference/counted.h"

#include <map>
#include <vector>

namespace lr::cpu::reference {

// Errors of the tensors that a launch has written, by their place in memory. What is not here is
// exact: inputs, weights, and all that earlier launches left.
class Errors {
  public:
    // `bytes` at `base` hold elements of `dtype`; their errors are zero until they are set.
    void open(const std::byte* base, std::int64_t bytes, DType dtype);
    void clear() { tensors_.clear(); }

    // One error an element, from the element at `address` on; null where all is exact.
    double* find(const std::byte* address);
    const double* find(const std::byte* address) const {
        return const_cast<Errors*>(this)->find(address);
    }

  private:
    struct Tensor {
        std::int64_t bytes;
        DType dtype;
        std::vector<double> errors;
    };
    std::map<const std::byte*, Tensor> tensors_;
};

// Rows of a float tensor or of codes. Element `column` counts along the dense dims of a row.
class In {
  public:
    In(ConstView view, const Errors& errors);

    bool empty() const { return view_.empty(); }
    std::int64_t rows() const { return view_.rows(); }
    std::int64_t columns() const { return view_.shape.row_count(); }
    Counted at(std::int64_t row, std::int64_t column) const;
    // [count] of a row, decoded.
    void load(std::int64_t row, std::int64_t first, std::int64_t count,
              std::vector<Counted>& out) const;

  private:
    ConstView view_;
    const double* errors_; // of the view's first element; null: exact
};

class Out {
  public:
    Out(View view, Errors& errors);

    std::int64_t rows() const { return view_.rows(); }
    std::int64_t columns() const { return view_.shape.row_count(); }
    // Rounds to the view's type.
    void set(std::int64_t row, std::int64_t column, Counted x);
    void zero_row(std::int64_t row);
    void zero_from(std::int64_t row) {
        for (; row < rows(); ++row)
            zero_row(row);
    }

  private:
    View view_;
    double* errors_;
};

} // namespace lr::cpu::reference
