// SPDX-License-Identifier: Apache-2.0
//
// tests/ops/gdn/gdn_case.h: what the Gated DeltaNet tests share: the tables of a packed prefill
// batch, comparison with an oracle in double, and the head index.
#pragma once

#include "core/status.h"
#include "core/thread_pool.h"
#include "ops/op.h"
#include "tests/ops/guarded_tensor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace lr::ops::gdn_test {

// Largest relative error of one rounding.
inline constexpr double kBf16Error = 0x1p-8;
inline constexpr double kF32Error = 0x1p-24;

inline DType act_dtype(Precision precision) {
    return precision == Precision::kModel ? DType::kBF16 : DType::kF32;
}
// Error of a store to this dtype.
inline double store_error(DType dtype) {
    return dtype == DType::kBF16 ? kBf16Error : 0;
}
inline double rounded(Precision precision, double x) {
    return precision == Precision::kModel ? double{numerics::round_bf16(static_cast<float>(x))} : x;
}

inline double silu(double x) {
    return x / (1.0 + std::exp(-x));
}
inline double sigmoid(double x) {
    return 1.0 / (1.0 + std::exp(-x));
}
inline double softplus(double x) {
    return std::log1p(std::exp(x));
}

// Sequences laid out one after another, then `pad_rows` dead rows; the tables also have one unused
// sequence and two unused chunks, whose entries are as a padded batch has them.
struct Packed {
    std::int64_t n, live, chunks;
    GuardedTensor cu_seqlens, slot, mask, chunk_row, chunk_len, seq_chunk, n_live;

    Packed(const std::vector<std::int64_t>& lengths, const std::vector<int>& slots,
           const std::vector<int>& masks, std::int64_t pad_rows = 3)
        : n(total(lengths) + pad_rows), live(total(lengths)), chunks(count_chunks(lengths) + 2),
          cu_seqlens(DType::kI32, {size(lengths) + 2}), slot(DType::kI32, {size(lengths) + 1}),
          mask(DType::kI32, {size(lengths) + 1}), chunk_row(DType::kI32, {chunks}),
          chunk_len(DType::kI32, {chunks}), seq_chunk(DType::kI32, {size(lengths) + 2}),
          n_live(DType::kI32, {1}) {
        n_live.set(0, static_cast<double>(live));
        std::int64_t row = 0, chunk = 0;
        for (std::int64_t b = 0; b <= size(lengths); ++b) {
            const bool used = b < size(lengths);
            const auto i = static_cast<std::size_t>(b);
            cu_seqlens.set(b, static_cast<double>(row));
            seq_chunk.set(b, static_cast<double>(chunk));
            slot.set(b, used ? slots[i] : -1);
            mask.set(b, used ? masks[i] : 0);
            for (std::int64_t left = used ? lengths[i] : 0; left > 0; left -= kGdnChunk, ++chunk) {
                const std::int64_t length = std::min(left, kGdnChunk);
                chunk_row.set(chunk, static_cast<double>(row));
                chunk_len.set(chunk, static_cast<double>(length));
                row += length;
            }
        }
        cu_seqlens.set(size(lengths) + 1, static_cast<double>(row));
        seq_chunk.set(size(lengths) + 1, static_cast<double>(chunk));
        for (; chunk < chunks; ++chunk) {
            chunk_row.set(chunk, 0);
            chunk_len.set(chunk, 0);
        }
    }

    static std::int64_t size(const std::vector<std::int64_t>& lengths) {
        return static_cast<std::int64_t>(lengths.size());
    }
    static std::int64_t total(const std::vector<std::int64_t>& lengths) {
        std::int64_t sum = 0;
        for (std::int64_t length : lengths)
            sum += length;
        return sum;
    }
    static std::int64_t count_chunks(const std::vector<std::int64_t>& lengths) {
        std::int64_t sum = 0;
        for (std::int64_t length : lengths)
            sum += (length + kGdnChunk - 1) / kGdnChunk;
        return sum;
    }
    std::int64_t row_of(std::int64_t chunk) {
        return static_cast<std::int64_t>(chunk_row.at(chunk));
    }
    std::int64_t length_of(std::int64_t chunk) {
        return static_cast<std::int64_t>(chunk_len.at(chunk));
    }
};

// Checks the arguments and runs the CPU function.
template <typename Args>
void run_op(void (*function)(const Args&, ThreadPool&), const Args& args, ThreadPool& pool) {
    const Status status = check(args);
    ASSERT_TRUE(status.ok()) << status.message();
    function(args, pool);
}
template <typename Args>
void run_op(void (*function)(const Args&, ThreadPool&), const Args& args, int threads) {
    ThreadPool pool(threads);
    run_op(function, args, pool);
}

// got is within `bound` of expected, both finite.
inline ::testing::AssertionResult near(double got, double expected, double bound) {
    if (std::isfinite(got) && std::abs(got - expected) <= bound)
        return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure()
           << "got " << got << ", expected " << expected << ", difference " << got - expected
           << ", bound " << bound;
}

// Rows [first, first + rows) of every head of x, made unit length in place (x is [n, H, d]).
inline void make_unit(GuardedTensor& x, std::int64_t rows) {
    const Shape shape = x.view().shape;
    for (std::int64_t head = 0; head < rows * shape[1]; ++head) {
        double squares = 0;
        for (std::int64_t i = 0; i < shape[2]; ++i)
            squares += x.at(head * shape[2] + i) * x.at(head * shape[2] + i);
        for (std::int64_t i = 0; i < shape[2]; ++i)
            x.set(head * shape[2] + i, x.at(head * shape[2] + i) / std::sqrt(squares));
    }
}

// g [n, Hv]: the running sums, within each chunk, of decays between -0.6 and 0.
inline void fill_cumulative(GuardedTensor& g, Packed& batch) {
    const std::int64_t heads = g.view().shape[1];
    const numerics::CounterRng rng("decay", 3);
    for (std::int64_t c = 0; c < batch.chunks; ++c)
        for (std::int64_t head = 0; head < heads; ++head)
            for (std::int64_t i = 0; i < batch.length_of(c); ++i) {
                const std::int64_t at = (batch.row_of(c) + i) * heads + head;
                const double before = i == 0 ? 0 : g.at(at - heads);
                g.set(at, before + rng.uniform(static_cast<std::uint64_t>(at), -0.6f, 0.0f));
            }
}

// x holds numbers between 0 and 1 in rows [0, rows).
inline void fill_unit_interval(GuardedTensor& x, std::int64_t rows) {
    const numerics::CounterRng rng("unit", 5);
    for (std::int64_t i = 0; i < rows * x.view().shape.row_count(); ++i)
        x.set(i, rng.uniform(static_cast<std::uint64_t>(i), 0.02f, 0.98f));
}

// Random values in rows [0, rows), NaN below.
inline void fill_rows(GuardedTensor& x, const char* name, double deviation, std::int64_t rows) {
    x.fill(name, deviation);
    x.poison(rows, x.view().rows() - rows);
}

// The same, every value a bf16 number whatever the dtype.
inline void fill_bf16_rows(GuardedTensor& x, const char* name, double deviation,
                           std::int64_t rows) {
    fill_rows(x, name, deviation, rows);
    for (std::int64_t i = 0; i < rows * x.view().shape.row_count(); ++i)
        x.set(i, rounded(Precision::kModel, x.at(i)));
}

} // namespace lr::ops::gdn_test
