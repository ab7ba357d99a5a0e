// SPDX-License-Identifier: Apache-2.0
//
// cpu/gemm/bf16_panel.h: a panel of weight rows, and its product with rows of activations where
// both are exact in bf16 and the instruction set multiplies such numbers (cpu/kernels/bf16_dot.h).
#pragma once

#include "cpu/gemm/operand_rows.h"
#include "cpu/gemm/panel.h"

#include <cstdint>

namespace lr::cpu {

// Slots of thread_scratch that one product may use; 2 holds its results, 3 is experts_gate_up's.
inline constexpr int kPanelWeightSlot = 0;
inline constexpr int kPanelRowSlot = 1;
inline constexpr int kPanelScaleSlot = 4;
inline constexpr int kPanelSharedSlot = 5; // share_packed_rows

// Numbers from a packed row to the next: rows a power of two apart would share cache sets.
constexpr std::int64_t packed_stride(std::int64_t k) {
    return packed_count(k) + 32;
}

// Rows of x that are read together: two tiles of 6 or three of 4.
inline constexpr std::int64_t kPanelRowBlock = 12;

// Rows a, then rows b of a weight.
class PanelRows {
  public:
    PanelRows(const WeightRows& w, RowRun a, RowRun b) : w_(w), a_(a), b_(b) {}

    const WeightRows& weight() const { return w_; }
    std::int64_t width() const { return a_.count + b_.count; }

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

  private:
    const WeightRows& w_;
    RowRun a_, b_;
};

class Bf16PanelProduct {
  public:
    Bf16PanelProduct(const ActivationRows& x, const PanelRows& w);

    // For multiply(): bf16 numbers of all weight rows of the panel.
    void decode_weights();
    // out[rows.count, width], rows.count <= kPanelRowBlock, before the factors of rows and columns;
    // from decoded weights or, without, from weights in place.
    void multiply(RowRun rows, float* out);

  private:
    void pack_rows(RowRun rows, Codes order);
    void multiply_run(RowRun rows, const WeightRun& run, std::int64_t column, float* out);
    BlockScales block_scales(RowRun rows, ConstView scales) const;

    const ActivationRows& x_;
    const PanelRows& w_;
    std::int64_t k_, stride_, blocks_; // stride_: numbers from a packed row to the next
    ActivationRows::Packed rows_;
    std::uint16_t* weights_ = nullptr; // [width, stride_]
    float* lane_scales_ = nullptr;     // kNvfp4: [width, blocks_, 16]
};

} // namespace lr::cpu
