// SPDX-License-Identifier: Apache-2.0
#include "cpu/gemm/panel.h"

#include "cpu/gemm/bf16_panel.h"
#include "cpu/kernels/kernels.h"
#include "cpu/rows.h"

#include <algorithm>

namespace lr::cpu {
namespace {

constexpr int kResultSlot = 2;

// Up to this many rows of x read weights as they lie in memory; more read them decoded.
constexpr std::int64_t kFewRows = 4;
// A decoded panel and a block of rows share a core's second-level cache, which is larger where bf16
// numbers are multiplied.
constexpr std::int64_t kPanelBytes = 256 * 1024;

// Decoded rows are this far apart: rows a power of two apart would share cache sets.
std::int64_t padded(std::int64_t k) {
    return (k + 15) / 16 * 16 + 16;
}

// One panel of weight rows against blocks of rows of x, in the tree of cpu/kernels/kernels.h.
class PanelProduct {
  public:
    PanelProduct(const ActivationRows& x, const PanelRows& w)
        : x_(x), w_(w), k_(w.weight().columns()), stride_(padded(k_)) {}

    // For multiply(): f32 values of all weight rows of the panel.
    void decode_weights() {
        weights_ = thread_scratch(kPanelWeightSlot, w_.width() * stride_);
        w_.for_each_run([&](const WeightRun& run, std::int64_t column, std::int64_t) {
            for (std::int64_t j = 0; j < run.rows; ++j)
                kernels().decode(run.codes, run.data + j * run.stride,
                                 run.scales + j * run.scale_stride, k_,
                                 weights_ + (column + j) * stride_);
        });
    }

    // out[rows.count, width()], from decoded weights or, without, from weights in place.
    void multiply(RowRun rows, float* out) {
        decode_rows(rows);
        w_.for_each_run([&](const WeightRun& run, std::int64_t column, std::int64_t) {
            multiply_run(run, column, out + column);
        });
    }

  private:
    void decode_rows(RowRun rows) {
        rows_ = thread_scratch(kPanelRowSlot, kPanelRowBlock * stride_);
        row_count_ = rows.count;
        for (std::int64_t i = 0; i < rows.count; ++i)
            x_.decode(rows.first + i, weights_ ? 1.0f : w_.weight().lift(), rows_ + i * stride_);
    }

    void multiply_run(const WeightRun& run, std::int64_t column, float* out) const {
        DotArgs args;
        args.x = run.block_scales.empty() ? rows_ : scaled_rows(run.block_scales);
        args.x_stride = stride_;
        args.rows = row_count_;
        args.columns = run.rows;
        args.count = k_;
        args.out = out;
        args.out_stride = w_.width();
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
        float* scales = thread_scratch(kPanelScaleSlot, padded(blocks) + kPanelRowBlock * stride_);
        float* scaled = scales + padded(blocks);
        load_floats(block_scales, 0, 0, blocks, scales);
        for (std::int64_t i = 0; i < row_count_; ++i)
            kernels().scale_blocks(rows_ + i * stride_, scales, k_, scaled + i * stride_);
        return scaled;
    }

    const ActivationRows& x_;
    const PanelRows& w_;
    std::int64_t k_, stride_;
    float* rows_ = nullptr; // rows of x in f32
    std::int64_t row_count_ = 0;
    float* weights_ = nullptr; // [width(), stride_]
};

bool in_bf16(const ActivationRows& x, const WeightRows& w) {
    return kernels().bf16 && x.exact_in_bf16() && w.exact_in_bf16();
}

// The two scales of each dot.
void multiply_factors(const ActivationRows& x, RowRun rows, const PanelRows& panel, float* out) {
    float factors[kMaxPanel];
    panel.for_each_run([&](const WeightRun& run, std::int64_t column, std::int64_t row) {
        for (std::int64_t j = 0; j < run.rows; ++j)
            factors[column + j] = panel.weight().factor(row + j);
    });
    const bool scaled =
        std::any_of(factors, factors + panel.width(), [](float factor) { return factor != 1.0f; });
    for (std::int64_t i = 0; i < rows.count; ++i) {
        const float factor = x.factor(rows.first + i);
        if (!scaled && factor == 1.0f)
            continue;
        for (std::int64_t j = 0; j < panel.width(); ++j)
            out[i * panel.width() + j] *= factor * factors[j];
    }
}

template <typename Product> void multiply_blocks(Product product, const ActivationRows& x,
                                                 RowRun rows, const PanelRows& panel,
                                                 PanelSink sink) {
    if (rows.count > kFewRows)
        product.decode_weights();
    float* out = thread_scratch(kResultSlot, kPanelRowBlock * panel.width());
    for (std::int64_t i = 0; i < rows.count; i += kPanelRowBlock) {
        const RowRun block{rows.first + i, std::min(kPanelRowBlock, rows.count - i)};
        product.multiply(block, out);
        multiply_factors(x, block, panel, out);
        sink(block.first, block.count, out);
    }
}

} // namespace

std::int64_t panel_width(std::int64_t k) {
    const std::int64_t rows =
        kernels().bf16 ? 2 * kPanelBytes / (2 * padded(k)) : kPanelBytes / (4 * padded(k));
    return std::clamp<std::int64_t>(rows / kPanelStep * kPanelStep, kPanelStep, 64);
}

std::int64_t panel_width(std::int64_t k, std::int64_t rows, std::int64_t n, int threads) {
    const bool few = rows <= kFewRows;
    const std::int64_t most = few ? kMaxPanel : panel_width(k);
    const std::int64_t share = n / ((few ? 4 : 2) * threads) / kPanelStep * kPanelStep;
    return std::clamp(share, std::min<std::int64_t>(32, most), most);
}

void share_packed_rows(ActivationRows& x, std::int64_t rows, const WeightRows& w,
                       ThreadPool& pool) {
    const std::optional<Codes> codes = w.codes();
    if (rows <= kFewRows || !codes || !in_bf16(x, w))
        return;
    const std::int64_t stride = packed_stride(w.columns());
    auto* packed =
        reinterpret_cast<std::uint16_t*>(thread_scratch(kPanelSharedSlot, rows * stride / 2));
    pool.parallel_for(rows, 8, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i)
            x.pack(i, *codes, packed + i * stride);
    });
    x.share({packed, stride});
}

void multiply_panel(const ActivationRows& x, RowRun rows, const WeightRows& w, RowRun a, RowRun b,
                    PanelSink sink) {
    const PanelRows panel(w, a, b);
    LR_CHECK_LE(panel.width(), kMaxPanel);
    if (in_bf16(x, w))
        return multiply_blocks(Bf16PanelProduct(x, panel), x, rows, panel, sink);
    multiply_blocks(PanelProduct(x, panel), x, rows, panel, sink);
}

} // namespace lr::cpu
