// SPDX-License-Identifier: Apache-2.0
#include "cpu/activation.h"
#include "cpu/experts/experts.h"
#include "cpu/experts/tasks.h"
#include "cpu/rows.h"
#include "numerics/quantize.h"

#include <algorithm>
#include <cstring>

namespace lr::cpu {
namespace {

constexpr int kFoldedSlot = 3; // slots 0..2 belong to multiply_panel

// F from gate and up of one row and `count` columns. kModel rounds the two projections and F to
// bf16, as a GEMM and an activation that store bf16 do.
void fold_gate_up(const float* gate, const float* up, std::int64_t count, ops::Precision precision,
                  float* f) {
    const bool round = precision == ops::Precision::kModel;
    for (std::int64_t i = 0; i < count; ++i) {
        const float g = round ? round_bf16(gate[i]) : gate[i];
        const float u = round ? round_bf16(up[i]) : up[i];
        const float product = silu(g) * u;
        f[i] = round ? round_bf16(product) : product;
    }
}

void quantize_row(const ops::ExpertsGateUpArgs& args, std::int64_t row, std::span<const float> f) {
    const auto bytes = static_cast<std::size_t>(dtype_bytes(args.f.dtype, args.f.shape[1]));
    const std::span<std::uint8_t> codes(args.f.row_as<std::uint8_t>(row), bytes);
    const auto scales = static_cast<std::size_t>(args.f_scale.shape.row_count());
    switch (ops::activation_format(args.f, args.f_scale)) {
    case ops::ActivationFormat::kPlain:
        LR_CHECK(!is_float(args.f.dtype));
        return;
    case ops::ActivationFormat::kFp8Token:
        *args.f_scale.row_as<float>(row) = numerics::quantize_fp8(f, codes);
        return;
    case ops::ActivationFormat::kFp8Group:
        return numerics::quantize_fp8_groups(f, codes, {args.f_scale.row_as<float>(row), scales});
    case ops::ActivationFormat::kFp8Static:
        return numerics::quantize_fp8_with_scale(f, args.f_global, codes);
    case ops::ActivationFormat::kNvfp4:
        return numerics::quantize_nvfp4_activation(
            f, numerics::EncodeScale(args.f_global), codes,
            {args.f_scale.row_as<std::uint8_t>(row), scales});
    }
}

} // namespace

void experts_gate_up(const ops::ExpertsGateUpArgs& args, ThreadPool& pool) {
    const ActivationRows x(args.x, args.x_scale, args.x_global, args.row_map, args.per_token);
    const std::int64_t width = args.f.shape[1];
    const bool codes = !is_float(args.f.dtype);
    // A scale may need a whole row of F, which several tasks produce: codes are made in a second
    // pass over F in f32.
    const std::int64_t used = args.end.rows() ? int_at(args.end, args.end.rows() - 1) : 0;
    LR_CHECK_LE(used, args.f.rows());
    float* folded = codes ? thread_scratch(kFoldedSlot, used * width) : nullptr;

    for_each_expert_panel(
        args.start, args.end, width, panel_width(args.w.columns()) / 2, pool,
        [&](std::int64_t e, RowRun rows, RowRun columns) {
            const RowRun up{width + columns.first, columns.count};
            multiply_panel(
                x, rows, WeightRows(args.w, e), columns, up,
                [&](std::int64_t first, std::int64_t count, const float* values) {
                    for (std::int64_t i = 0; i < count; ++i) {
                        const float* gate = values + i * 2 * columns.count;
                        float f[kMaxPanel];
                        fold_gate_up(gate, gate + columns.count, columns.count, args.precision, f);
                        if (codes)
                            std::copy_n(f, columns.count,
                                        folded + (first + i) * width + columns.first);
                        else
                            store_floats(args.f, first + i, columns.first, columns.count, f);
                    }
                });
        });
    if (!codes)
        return;
    for_each_expert_panel(args.start, args.end, 1, 1, pool, [&](std::int64_t, RowRun rows, RowRun) {
        for (std::int64_t r = rows.first; r < rows.first + rows.count; ++r)
            quantize_row(args, r, {folded + r * width, static_cast<std::size_t>(width)});
    });
}

} // namespace lr::cpu
