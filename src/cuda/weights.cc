// SPDX-License-Identifier: Apache-2.0
#include "cuda/weights.h"

#include "cuda/detail/check.h"
#include "numerics/bf16.h"
#include "numerics/quantize.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace lr::cuda {
namespace {

using ops::WeightFormat;
using ops::WeightPart;

constexpr std::int64_t kAlignment = 256;

std::int64_t aligned(std::int64_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// The pieces of one weight in one buffer.
struct Layout {
    std::int64_t rows = 0, columns = 0;
    std::int64_t data_bytes = 0, scale_offset = 0, scale_bytes = 0, factor_offset = 0, bytes = 0;
    DType scale_dtype = DType::kF32;
    Shape scale_shape;
    bool block_per_row = false; // kFp8Block: scales for each row
    bool factors = false;
};

bool whole_blocks(const ops::Weight& weight) {
    return std::all_of(weight.parts.begin(), weight.parts.end(), [](const WeightPart& part) {
        return part.data.rows() % numerics::kFp8Block == 0;
    });
}

Layout layout_of(const ops::Weight& weight) {
    Layout layout;
    layout.rows = weight.shape.count() / weight.columns();
    layout.columns = weight.columns();
    layout.data_bytes = dtype_bytes(weight.parts[0].data.dtype, layout.rows * layout.columns);
    if (weight.format == WeightFormat::kFp8Block) {
        layout.block_per_row = !whole_blocks(weight);
        const std::int64_t rows =
            layout.block_per_row ? layout.rows : layout.rows / numerics::kFp8Block;
        layout.scale_shape = {rows,
                              (layout.columns + numerics::kFp8Block - 1) / numerics::kFp8Block};
    } else if (weight.format == WeightFormat::kNvfp4) {
        layout.scale_dtype = DType::kE4M3;
        layout.scale_shape = {layout.rows, layout.columns / numerics::kNvfp4Block};
    }
    if (layout.scale_shape.rank() > 0)
        layout.scale_bytes = dtype_bytes(layout.scale_dtype, layout.scale_shape.count());
    layout.factors =
        weight.format != WeightFormat::kPlain && weight.format != WeightFormat::kFp8Block;
    layout.scale_offset = aligned(layout.data_bytes);
    layout.factor_offset = layout.scale_offset + aligned(layout.scale_bytes);
    layout.bytes = layout.factor_offset + (layout.factors ? aligned(4 * layout.rows) : 0);
    return layout;
}

float scale_at(ConstView scale, std::int64_t row, std::int64_t column) {
    return scale.dtype == DType::kF32
               ? scale.row_as<float>(row)[column]
               : numerics::decode_bf16(scale.row_as<std::uint16_t>(row)[column]);
}

// Codes of k, k + 1 become neighbours in two halves of each word (cuda/weights.h).
void pair_nibbles(std::byte* data, std::int64_t bytes) {
    for (std::int64_t at = 0; at < bytes; at += 4) {
        std::uint32_t in = 0, out = 0;
        std::memcpy(&in, data + at, 4);
        for (int j = 0; j < 4; ++j)
            out |= (in >> (8 * j) & 0xFu) << (4 * j) | (in >> (8 * j + 4) & 0xFu) << (16 + 4 * j);
        std::memcpy(data + at, &out, 4);
    }
}

// The rows of a part to the device, a buffer at a time.
Status send_data(const ops::Weight& weight, const WeightPart& part, std::byte* to, Staging& staging,
                 ThreadPool& pool) {
    const std::int64_t width = dtype_bytes(part.data.dtype, part.data.shape[1]);
    const std::int64_t most = static_cast<std::int64_t>(Staging::kBytes) / width;
    if (most == 0)
        return fail(Code::kUnsupported,
                    "cuda: weight {}: expected rows of at most {} bytes, got {}",
                    weight.shape.to_string(), Staging::kBytes, width);
    for (std::int64_t first = 0; first < part.data.rows(); first += most) {
        const std::int64_t count = std::min(most, part.data.rows() - first);
        LR_TRY_ASSIGN(const std::span<std::byte> buffer, staging.next());
        pool.parallel_for(count, 64, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t row = begin; row < end; ++row)
                std::memcpy(buffer.data() + row * width, part.data.row(first + row),
                            static_cast<std::size_t>(width));
            if (weight.format == WeightFormat::kNvfp4)
                pair_nibbles(buffer.data() + begin * width, (end - begin) * width);
        });
        LR_TRY(staging.send(to + first * width, static_cast<std::size_t>(count * width)));
    }
    return {};
}

// Bytes from anywhere in host memory.
Status send_bytes(std::span<const std::byte> from, std::byte* to, Staging& staging) {
    for (std::size_t first = 0; first < from.size(); first += Staging::kBytes) {
        const std::size_t count = std::min(Staging::kBytes, from.size() - first);
        LR_TRY_ASSIGN(const std::span<std::byte> buffer, staging.next());
        std::memcpy(buffer.data(), from.data() + first, count);
        LR_TRY(staging.send(to + first, count));
    }
    return {};
}

void copy_scales(const ops::Weight& weight, const Layout& layout, const WeightPart& part,
                 std::int64_t first, std::byte* to) {
    if (weight.format == WeightFormat::kNvfp4) {
        const auto width = static_cast<std::size_t>(layout.scale_shape[1]);
        for (std::int64_t row = 0; row < part.data.rows(); ++row)
            std::memcpy(to + static_cast<std::size_t>(first + row) * width, part.scale.row(row),
                        width);
        return;
    }
    const std::int64_t unit = layout.block_per_row ? 1 : numerics::kFp8Block;
    auto* const scales = reinterpret_cast<float*>(to);
    for (std::int64_t row = 0; row < part.data.rows(); row += unit)
        for (std::int64_t column = 0; column < layout.scale_shape[1]; ++column)
            scales[(first + row) / unit * layout.scale_shape[1] + column] =
                scale_at(part.scale, row / numerics::kFp8Block, column);
}

float factor_of(const ops::Weight& weight, const WeightPart& part, std::int64_t row) {
    if (weight.format == WeightFormat::kFp8Channel)
        return part.scale.dtype == DType::kF32
                   ? part.scale.as<float>()[row]
                   : numerics::decode_bf16(part.scale.as<std::uint16_t>()[row]);
    return weight.format == WeightFormat::kNvfp4 ? part.global * kNvfp4Lift : part.global;
}

// Scales and factors, laid out as behind the data: [scale_offset, bytes).
std::vector<std::byte> lay_out_scales(const ops::Weight& weight, const Layout& layout) {
    std::vector<std::byte> host(static_cast<std::size_t>(layout.bytes - layout.scale_offset));
    auto* const factors =
        reinterpret_cast<float*>(host.data() + (layout.factor_offset - layout.scale_offset));
    std::int64_t first = 0;
    for (const WeightPart& part : weight.parts) {
        if (layout.scale_bytes > 0)
            copy_scales(weight, layout, part, first, host.data());
        for (std::int64_t row = 0; layout.factors && row < part.data.rows(); ++row)
            factors[first + row] = factor_of(weight, part, row);
        first += part.data.rows();
    }
    return host;
}

Status check_readable(const ops::Weight& weight) {
    const DType dtype = weight.parts[0].data.dtype;
    if (weight.format == WeightFormat::kPlain && dtype != DType::kBF16)
        return fail(Code::kUnsupported, "cuda: weight {}: expected bf16 values, got {}",
                    weight.shape.to_string(), dtype_name(dtype));
    return {};
}

} // namespace

Result<DeviceWeight> upload(const ops::Weight& weight, Staging& staging, ThreadPool& pool) {
    LR_CHECK(weight.bound());
    LR_TRY(check_readable(weight));
    const Layout layout = layout_of(weight);
    LR_TRY_ASSIGN(DeviceBuffer memory,
                  DeviceBuffer::allocate(static_cast<std::size_t>(layout.bytes)));
    std::int64_t first = 0;
    for (const WeightPart& part : weight.parts) {
        LR_TRY(send_data(weight, part,
                         memory.data() + dtype_bytes(part.data.dtype, first * layout.columns),
                         staging, pool));
        first += part.data.rows();
    }
    LR_TRY(
        send_bytes(lay_out_scales(weight, layout), memory.data() + layout.scale_offset, staging));
    DeviceWeight device{std::move(memory), {}};
    std::byte* const base = device.memory.data();
    device.part.data = ConstView(base, weight.parts[0].data.dtype, {layout.rows, layout.columns});
    if (layout.scale_bytes > 0)
        device.part.scale =
            ConstView(base + layout.scale_offset, layout.scale_dtype, layout.scale_shape);
    if (layout.factors)
        device.part.row_factor = ConstView(base + layout.factor_offset, DType::kF32, {layout.rows});
    return device;
}

} // namespace lr::cuda
