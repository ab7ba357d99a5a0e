// SPDX-License-Identifier: Apache-2.0
#include "cpu/gemm/panel.h"

#include "cpu/dot_tile.h"
#include "cpu/rows.h"
#include "numerics/quantize.h"

#include <algorithm>

namespace lr::cpu {
namespace {

constexpr int kWeightSlot = 0;
constexpr int kRowSlot = 1;
constexpr int kResultSlot = 2;

// Rows of x that are decoded together: two tiles of 4; 8 rows of K = 2048 are 64 KiB.
constexpr std::int64_t kRowBlock = 8;
// A few rows of x meet the panel in slices of one tile, which stay in the L1 cache.
constexpr std::int64_t kSlice = 4;
constexpr std::int64_t kPanelBytes = 512 * 1024;

// Decoded rows are this far apart: rows a power of two apart would share cache sets.
std::int64_t padded(std::int64_t k) {
    return (k + 15) / 16 * 16 + 16;
}

// One panel against one block of rows.
class PanelProduct {
  public:
    PanelProduct(const ActivationRows& x, const WeightRows& w, RowRun a, RowRun b)
        : x_(x), w_(w), a_(a), b_(b), k_(w.columns()), stride_(padded(k_)) {}

    std::int64_t width() const { return a_.count + b_.count; }

    void decode_weights(std::int64_t first, std::int64_t count) {
        weights_ = thread_scratch(kWeightSlot, count * stride_);
        for (std::int64_t j = 0; j < count; ++j)
            w_.decode(weight_row(first + j), x_.scales(), weights_ + j * stride_);
    }

    void decode_rows(RowRun rows) {
        rows_ = rows;
        values_ = thread_scratch(kRowSlot, kRowBlock * stride_);
        for (std::int64_t i = 0; i < rows.count; ++i)
            x_.decode(rows.first + i, values_ + i * stride_);
    }

    // out[rows, width()], columns [first, first + count), from the decoded rows and weights.
    void multiply(std::int64_t first, std::int64_t count, float* out) const {
        if (x_.scales() == BlockScales::kApart)
            return multiply_blocks(first, count, out);
        dot_tile(values_, stride_, rows_.count, weights_, stride_, count, k_, out + first, width());
        for (std::int64_t i = 0; i < rows_.count; ++i) {
            const float factor = x_.factor(rows_.first + i);
            for (std::int64_t j = first; j < first + count; ++j)
                out[i * width() + j] *= factor * w_.factor(weight_row(j));
        }
    }

  private:
    std::int64_t weight_row(std::int64_t j) const {
        return j < a_.count ? a_.first + j : b_.first + j - a_.count;
    }

    // Per 128 columns: dot of codes, times both scales, added in ascending k.
    void multiply_blocks(std::int64_t first, std::int64_t count, float* out) const {
        for (std::int64_t i = 0; i < rows_.count; ++i)
            std::fill_n(out + i * width() + first, count, 0.0f);
        float dots[kRowBlock * kSlice];
        for (std::int64_t j = 0; j < count; j += kSlice)
            for (std::int64_t k = 0, block = 0; k < k_; k += numerics::kFp8Group, ++block) {
                const std::int64_t slice = std::min(kSlice, count - j);
                dot_tile(values_ + k, stride_, rows_.count, weights_ + j * stride_ + k, stride_,
                         slice, std::min(numerics::kFp8Group, k_ - k), dots, kSlice);
                for (std::int64_t i = 0; i < rows_.count; ++i)
                    for (std::int64_t c = 0; c < slice; ++c)
                        out[i * width() + first + j + c] +=
                            dots[i * kSlice + c] *
                            (x_.block_scale(rows_.first + i, block) *
                             w_.block_scale(weight_row(first + j + c), block));
            }
    }

    const ActivationRows& x_;
    const WeightRows& w_;
    RowRun a_, b_, rows_;
    std::int64_t k_, stride_;
    float* weights_ = nullptr;
    float* values_ = nullptr;
};

} // namespace

std::int64_t panel_width(std::int64_t k) {
    const std::int64_t rows = kPanelBytes / static_cast<std::int64_t>(sizeof(float)) / padded(k);
    return std::clamp<std::int64_t>(rows / kSlice * kSlice, kSlice, 64);
}

void multiply_panel(const ActivationRows& x, RowRun rows, const WeightRows& w, RowRun a, RowRun b,
                    PanelSink sink) {
    PanelProduct product(x, w, a, b);
    const std::int64_t width = product.width();
    float* out = thread_scratch(kResultSlot, kRowBlock * width);
    if (rows.count <= kRowBlock) {
        product.decode_rows(rows);
        for (std::int64_t j = 0; j < width; j += kSlice) {
            const std::int64_t slice = std::min(kSlice, width - j);
            product.decode_weights(j, slice);
            product.multiply(j, slice, out);
        }
        sink(rows.first, rows.count, out);
        return;
    }
    product.decode_weights(0, width);
    for (std::int64_t i = 0; i < rows.count; i += kRowBlock) {
        const RowRun block{rows.first + i, std::min(kRowBlock, rows.count - i)};
        product.decode_rows(block);
        product.multiply(0, width, out);
        sink(block.first, block.count, out);
    }
}

} // namespace lr::cpu
