// SPDX-License-Identifier: Apache-2.0
#include "cpu/gemm/bf16_panel.h"

#include "cpu/rows.h"

#include <algorithm>
#include <optional>

namespace lr::cpu {
namespace {

// `count` numbers of bf16 and then `floats` floats in a thread's slot.
struct Scratch {
    std::uint16_t* numbers;
    float* floats;
};
Scratch scratch(int slot, std::int64_t count, std::int64_t floats) {
    float* memory = thread_scratch(slot, count / 2 + floats);
    return {reinterpret_cast<std::uint16_t*>(memory), memory + count / 2};
}

} // namespace

Bf16PanelProduct::Bf16PanelProduct(const ActivationRows& x, const PanelRows& w)
    : x_(x), w_(w), k_(w.weight().columns()), stride_(packed_stride(k_)),
      blocks_(packed_count(k_) / kDotBlock) {}

void Bf16PanelProduct::decode_weights() {
    const Scratch memory =
        scratch(kPanelWeightSlot, w_.width() * stride_, w_.width() * blocks_ * kLanes);
    weights_ = memory.numbers;
    lane_scales_ = memory.floats;
    w_.for_each_run([&](const WeightRun& run, std::int64_t column, std::int64_t) {
        for (std::int64_t j = 0; j < run.rows; ++j)
            kernels().bf16->expand(
                run.codes, run.data + j * run.stride, run.scales + j * run.scale_stride, k_,
                weights_ + (column + j) * stride_, lane_scales_ + (column + j) * blocks_ * kLanes);
    });
}

void Bf16PanelProduct::multiply(RowRun rows, float* out) {
    std::optional<Codes> packed;
    w_.for_each_run([&](const WeightRun& run, std::int64_t column, std::int64_t) {
        if (packed != run.codes)
            pack_rows(rows, run.codes);
        packed = run.codes;
        multiply_run(rows, run, column, out + column);
    });
}

void Bf16PanelProduct::pack_rows(RowRun rows, Codes order) {
    rows_ = x_.packed();
    if (rows_.rows) {
        rows_.rows += rows.first * rows_.stride;
        return;
    }
    std::uint16_t* packed = scratch(kPanelRowSlot, kPanelRowBlock * stride_, 0).numbers;
    for (std::int64_t i = 0; i < rows.count; ++i)
        x_.pack(rows.first + i, order, packed + i * stride_);
    rows_ = {packed, stride_};
}

void Bf16PanelProduct::multiply_run(RowRun rows, const WeightRun& run, std::int64_t column,
                                    float* out) {
    Bf16DotArgs args;
    args.x = rows_.rows;
    args.x_stride = rows_.stride;
    args.rows = rows.count;
    args.columns = run.rows;
    args.count = k_;
    args.out = out;
    args.out_stride = w_.width();
    if (!run.block_scales.empty())
        args.block_scales = block_scales(rows, run.block_scales);
    if (weights_) {
        args.w = reinterpret_cast<const std::byte*>(weights_ + column * stride_);
        args.w_stride = stride_ * static_cast<std::int64_t>(sizeof(std::uint16_t));
        args.lane_scales = lane_scales_ + column * blocks_ * kLanes;
        args.lane_scale_stride = blocks_ * kLanes;
        return kernels().bf16->dot_expanded(run.codes, args);
    }
    args.w = run.data;
    args.w_stride = run.stride;
    args.scales = run.scales;
    args.scale_stride = run.scale_stride;
    kernels().bf16->dot(run.codes, args);
}

// The scales of a run of weight rows, times those of each row of x where it has some.
BlockScales Bf16PanelProduct::block_scales(RowRun rows, ConstView scales) const {
    const bool each = x_.has_group_scales();
    float* values = thread_scratch(kPanelScaleSlot, kPanelRowBlock * blocks_);
    for (std::int64_t i = 0; i < (each ? rows.count : 1); ++i) {
        load_floats(scales, 0, 0, blocks_, values + i * blocks_);
        x_.multiply_group_scales(rows.first + i, blocks_, values + i * blocks_);
    }
    return {values, each ? blocks_ : 0};
}

} // namespace lr::cpu
