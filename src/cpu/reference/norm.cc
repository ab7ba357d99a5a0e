// SPDX-License-Identifier: Apache-2.0
//
// Embedding, residual norm, zero fill, and what collectives are with one rank.
#include "cpu/reference/ops.h"

#include <cstring>

namespace lr::cpu::reference {
namespace {

void copy_rows(ConstView x, View y, std::int64_t live, Errors& errors) {
    const In in(x, errors);
    Out out(y, errors);
    for (std::int64_t i = 0; i < live; ++i)
        for (std::int64_t j = 0; j < out.columns(); ++j)
            out.set(i, j, in.at(i, j));
    out.zero_from(live);
}

// Sum of residual and x as the norm reads it; rounded[j] as it is stored.
void add_row(const ops::AddRmsnormArgs& args, std::int64_t i, const In& x, const In& residual,
             std::vector<Counted>& sum) {
    const bool rounds =
        args.precision == ops::Precision::kModel && args.numerics == ops::Numerics::kHf;
    for (std::int64_t j = 0; j < x.columns(); ++j) {
        Counted& s = sum[static_cast<std::size_t>(j)];
        s = residual.empty() ? x.at(i, j) : residual.at(i, j) + x.at(i, j);
        if (rounds)
            s = stored(s, DType::kBF16);
    }
}

} // namespace

void embedding_lookup(const ops::EmbeddingLookupArgs& args, Errors& errors, ThreadPool&) {
    Out y(args.y, errors);
    const In table(args.table.parts.front().data, errors);
    const std::int64_t live = live_rows(args.n_live, y.rows());
    for (std::int64_t i = 0; i < y.rows(); ++i) {
        const std::int64_t row = i < live ? int_at(args.ids, i) - args.first_row : -1;
        if (row < 0 || row >= table.rows() || int_at(args.ids, i) < 0) {
            y.zero_row(i);
            continue;
        }
        for (std::int64_t j = 0; j < y.columns(); ++j)
            y.set(i, j, table.at(row, j));
    }
}

void add_rmsnorm(const ops::AddRmsnormArgs& args, Errors& errors, ThreadPool& pool) {
    const In x(args.x, errors), residual(args.residual, errors), weight(args.weight, errors);
    const std::int64_t width = x.columns(), live = live_rows(args.n_live, x.rows());
    Out y(args.y, errors);
    pool.parallel_for(live, 1, [&](std::int64_t i, std::int64_t) {
        std::vector<Counted> sum(static_cast<std::size_t>(width));
        add_row(args, i, x, residual, sum);
        Dot squares;
        for (const Counted& s : sum)
            squares.add(s, s);
        const Counted mean = squares.sum(tree_steps(width)) / exactly(static_cast<double>(width));
        const Counted inv = exactly(1) / sqrt(mean + exactly(args.eps));
        if (!args.residual_out.empty()) {
            Out residual_out(args.residual_out, errors);
            for (std::int64_t j = 0; j < width; ++j)
                residual_out.set(i, j, sum[static_cast<std::size_t>(j)]);
        }
        for (std::int64_t j = 0; j < width; ++j) {
            const Counted gain = exactly(1) + weight.at(j, 0);
            y.set(i, j, sum[static_cast<std::size_t>(j)] * inv * gain);
        }
    });
    y.zero_from(live);
    if (!args.residual_out.empty())
        Out(args.residual_out, errors).zero_from(live);
}

void all_reduce(const ops::AllReduceArgs& args, Errors& errors, ThreadPool&) {
    if (args.x.data != args.y.data)
        copy_rows(args.x, args.y, live_rows(args.n_live, args.y.rows()), errors);
}

void all_gather(const ops::AllGatherArgs& args, Errors& errors, ThreadPool&) {
    if (args.x.data != args.y.data)
        copy_rows(args.x, args.y, args.y.rows(), errors);
}

void zero_fill(const ops::ZeroFillArgs& args, Errors&, ThreadPool&) {
    const auto bytes = dtype_bytes(args.y.dtype, args.y.shape.row_count());
    for (std::int64_t i = 0; i < args.y.rows(); ++i)
        std::memset(args.y.row(i), 0, static_cast<std::size_t>(bytes));
}

} // namespace lr::cpu::reference
