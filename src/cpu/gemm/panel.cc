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

// A run of rows of one operand, decoded: values [count, stride], factors [count] and, where block
// scales stay apart, scales [count, blocks].
struct Decoded {
    float* values = nullptr;
    float* factors = nullptr;
    float* scales = nullptr;
};

// One panel against one block of rows.
class PanelProduct {
  public:
    PanelProduct(const ActivationRows& x, const WeightRows& w, RowRun a, RowRun b)
        : x_(x), w_(w), a_(a), b_(b), k_(w.columns()), stride_(padded(k_)),
          blocks_((k_ + numerics::kFp8Group - 1) / numerics::kFp8Group) {}

    std::int64_t width() const { return a_.count + b_.count; }

    // Columns [first, first + count) of the panel.
    void decode_weights(std::int64_t first, std::int64_t count) {
        weights_ = allocate(kWeightSlot, count);
        for (std::int64_t i = 0; i < count; ++i) {
            const std::int64_t j = first + i;
            decode(w_, j < a_.count ? a_.first + j : b_.first + j - a_.count, weights_, i);
        }
    }

    void decode_rows(RowRun rows) {
        rows_ = rows;
        values_ = allocate(kRowSlot, kRowBlock);
        for (std::int64_t i = 0; i < rows.count; ++i)
            decode(x_, rows.first + i, values_, i);
    }

    // out[rows, width()], columns [first, first + count), from the decoded rows and weights.
    void multiply(std::int64_t first, std::int64_t count, float* out) const {
        out += first;
        if (apart())
            return multiply_blocks(count, out);
        dot_tile(values_.values, stride_, rows_.count, weights_.values, stride_, count, k_, out,
                 width());
        for (std::int64_t i = 0; i < rows_.count; ++i)
            for (std::int64_t j = 0; j < count; ++j)
                out[i * width() + j] *= values_.factors[i] * weights_.factors[j];
    }

  private:
    bool apart() const { return x_.scales() == BlockScales::kApart; }

    Decoded allocate(int slot, std::int64_t count) const {
        float* memory = thread_scratch(slot, count * (stride_ + 1 + blocks_));
        return {memory, memory + count * stride_, memory + count * (stride_ + 1)};
    }

    void decode(const WeightRows& w, std::int64_t j, Decoded& out, std::int64_t i) const {
        w.decode(j, x_.scales(), out.values + i * stride_);
        out.factors[i] = w.factor(j);
        if (apart())
            w.block_scales(j, out.scales + i * blocks_);
    }
    void decode(const ActivationRows& x, std::int64_t r, Decoded& out, std::int64_t i) const {
        x.decode(r, out.values + i * stride_);
        out.factors[i] = x.factor(r);
        if (apart())
            x.block_scales(r, out.scales + i * blocks_);
    }

    // Per 128 columns: dot of codes, times both scales, added in ascending k.
    void multiply_blocks(std::int64_t count, float* out) const {
        for (std::int64_t i = 0; i < rows_.count; ++i)
            std::fill_n(out + i * width(), count, 0.0f);
        float dots[kRowBlock * kMaxPanel];
        for (std::int64_t b = 0; b < blocks_; ++b) {
            const std::int64_t k = b * numerics::kFp8Group;
            dot_tile(values_.values + k, stride_, rows_.count, weights_.values + k, stride_, count,
                     std::min(numerics::kFp8Group, k_ - k), dots, count);
            for (std::int64_t i = 0; i < rows_.count; ++i) {
                const float x_scale = values_.scales[i * blocks_ + b];
                for (std::int64_t j = 0; j < count; ++j)
                    out[i * width() + j] +=
                        dots[i * count + j] * (x_scale * weights_.scales[j * blocks_ + b]);
            }
        }
    }

    const ActivationRows& x_;
    const WeightRows& w_;
    RowRun a_, b_, rows_;
    std::int64_t k_, stride_, blocks_;
    Decoded weights_, values_;
};

} // namespace

std::int64_t panel_width(std::int64_t k) {
    const std::int64_t rows = kPanelBytes / static_cast<std::int64_t>(sizeof(float)) / padded(k);
    return std::clamp<std::int64_t>(rows / kSlice * kSlice, kSlice, kMaxPanel);
}

void multiply_panel(const ActivationRows& x, RowRun rows, const WeightRows& w, RowRun a, RowRun b,
                    PanelSink sink) {
    PanelProduct product(x, w, a, b);
    const std::int64_t width = product.width();
    LR_CHECK_LE(width, kMaxPanel);
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
