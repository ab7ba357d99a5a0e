// SPDX-License-Identifier: Apache-2.0
#include "cpu/gemm/panel.h"

#include "cpu/kernels/kernels.h"
#include "cpu/rows.h"

#include <algorithm>

namespace lr::cpu {
namespace {

constexpr int kWeightSlot = 0;
constexpr int kRowSlot = 1;
constexpr int kResultSlot = 2;
constexpr int kScaledSlot = 4; // 3 is experts_gate_up's

// Up to this many rows of x read weights as they lie in memory; more read them decoded.
constexpr std::int64_t kFewRows = 4;
// Rows of x that are decoded together: four tiles of 3 or two of 6.
constexpr std::int64_t kRowBlock = 12;
// A decoded panel and a block of rows share a core's second-level cache.
constexpr std::int64_t kPanelBytes = 256 * 1024;

// Decoded rows are this far apart: rows a power of two apart would share cache sets.
std::int64_t padded(std::int64_t k) {
    return (k + 15) / 16 * 16 + 16;
}

// Rows of x in f32, dense in memory `stride` apart.
struct DecodedRows {
    float* values = nullptr;
    std::int64_t count = 0;
    float factors[kRowBlock] = {};
};

// One panel of weight rows against blocks of rows of x.
class PanelProduct {
  public:
    PanelProduct(const ActivationRows& x, const WeightRows& w, RowRun a, RowRun b)
        : x_(x), w_(w), a_(a), b_(b), k_(w.columns()), stride_(padded(k_)) {}

    std::int64_t width() const { return a_.count + b_.count; }

    // For multiply(): f32 values of all weight rows of the panel.
    void decode_weights() {
        weights_ = thread_scratch(kWeightSlot, width() * stride_);
        for_each_run([&](const WeightRun& run, std::int64_t column, std::int64_t) {
            for (std::int64_t j = 0; j < run.rows; ++j)
                kernels().decode(run.codes, run.data + j * run.stride,
                                 run.scales + j * run.scale_stride, k_,
                                 weights_ + (column + j) * stride_);
        });
    }

    // out[rows.count, width()], from decoded weights or, without, from weights in place.
    void multiply(RowRun rows, float* out) {
        decode_rows(rows);
        for_each_run([&](const WeightRun& run, std::int64_t column, std::int64_t row) {
            multiply_run(run, column, out + column);
            for (std::int64_t j = 0; j < run.rows; ++j) {
                const float factor = w_.factor(row + j);
                for (std::int64_t i = 0; i < rows.count; ++i)
                    out[i * width() + column + j] *= rows_.factors[i] * factor;
            }
        });
    }

  private:
    // body(run, its first column in the panel, its first row in the weight).
    template <typename Body> void for_each_run(Body body) const {
        std::int64_t column = 0;
        for (const RowRun& rows : {a_, b_})
            for (std::int64_t done = 0; done < rows.count;) {
                const WeightRun run = w_.run(rows.first + done, rows.count - done);
                body(run, column, rows.first + done);
                done += run.rows;
                column += run.rows;
            }
    }

    void decode_rows(RowRun rows) {
        rows_.values = thread_scratch(kRowSlot, kRowBlock * stride_);
        rows_.count = rows.count;
        for (std::int64_t i = 0; i < rows.count; ++i) {
            x_.decode(rows.first + i, weights_ ? 1.0f : w_.lift(), rows_.values + i * stride_);
            rows_.factors[i] = x_.factor(rows.first + i);
        }
    }

    void multiply_run(const WeightRun& run, std::int64_t column, float* out) const {
        DotArgs args;
        args.x = run.block_scales.empty() ? rows_.values : scaled_rows(run.block_scales);
        args.x_stride = stride_;
        args.rows = rows_.count;
        args.columns = run.rows;
        args.count = k_;
        args.out = out;
        args.out_stride = width();
        if (weights_) {
            args.w = reinterpret_cast<const std::byte*>(weights_ + column * stride_);
            args.w_stride = stride_ * static_cast<std::int64_t>(sizeof(float));
            return kernels().dot(Codes::kF32, args);
        }
        args.w = run.data;
        args.w_stride = run.stride;
        args.scales = run.scales;
        args.scale_stride = run.scale_stride;
        kernels().dot(run.codes, args);
    }

    // x times the block scales of a run of weight rows.
    const float* scaled_rows(ConstView block_scales) const {
        const std::int64_t blocks = block_scales.shape[1];
        float* scales = thread_scratch(kScaledSlot, padded(blocks) + kRowBlock * stride_);
        float* scaled = scales + padded(blocks);
        load_floats(block_scales, 0, 0, blocks, scales);
        for (std::int64_t i = 0; i < rows_.count; ++i)
            kernels().scale_blocks(rows_.values + i * stride_, scales, k_, scaled + i * stride_);
        return scaled;
    }

    const ActivationRows& x_;
    const WeightRows& w_;
    RowRun a_, b_;
    std::int64_t k_, stride_;
    DecodedRows rows_;
    float* weights_ = nullptr; // [width(), stride_]
};

} // namespace

std::int64_t panel_width(std::int64_t k) {
    const std::int64_t rows = kPanelBytes / static_cast<std::int64_t>(sizeof(float)) / padded(k);
    return std::clamp<std::int64_t>(rows / kPanelStep * kPanelStep, kPanelStep, kMaxPanel);
}

void multiply_panel(const ActivationRows& x, RowRun rows, const WeightRows& w, RowRun a, RowRun b,
                    PanelSink sink) {
    PanelProduct product(x, w, a, b);
    LR_CHECK_LE(product.width(), kMaxPanel);
    if (rows.count > kFewRows)
        product.decode_weights();
    float* out = thread_scratch(kResultSlot, kRowBlock * product.width());
    for (std::int64_t i = 0; i < rows.count; i += kRowBlock) {
        const RowRun block{rows.first + i, std::min(kRowBlock, rows.count - i)};
        product.multiply(block, out);
        sink(block.first, block.count, out);
    }
}

} // namespace lr::cpu
