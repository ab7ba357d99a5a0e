// SPDX-License-Identifier: Apache-2.0
//
// Linear layers, split-K and row gathering.
#include "cpu/reference/operands.h"
#include "cpu/reference/ops.h"

#include <cstring>

namespace lr::cpu::reference {

void linear(const ops::LinearArgs& args, Errors& errors, ThreadPool& pool) {
    const ActivationRow rows(args.x, args.x_scale, args.x_global, errors);
    const WeightRow weight(args.w, -1);
    Out y(args.y, errors);
    const std::int64_t live = live_rows(args.n_live, y.rows()), k = args.w.columns();
    std::vector<std::vector<Counted>> x(static_cast<std::size_t>(live));
    for (std::int64_t i = 0; i < live; ++i)
        rows.load(i, x[static_cast<std::size_t>(i)]);
    const bool scaled = rows.scaled() || weight.scaled();
    pool.parallel_for(args.w.rows(), 64, [&](std::int64_t begin, std::int64_t end) {
        std::vector<double> w;
        for (std::int64_t j = begin; j < end; ++j) {
            weight.load(j, w);
            for (std::int64_t i = 0; i < live; ++i)
                y.set(i, j, product(x[static_cast<std::size_t>(i)], w, scaled, tree_steps(k)));
        }
    });
    y.zero_from(live);
}

void linear_splitk(const ops::LinearSplitkArgs& args, Errors& errors, ThreadPool& pool) {
    const In x(args.x, errors);
    const WeightRow weight(args.w, -1);
    Out partial(args.partial, errors); // rows: runs; columns: n * N
    const std::int64_t n = args.partial.shape[1], outputs = args.partial.shape[2];
    const std::int64_t live = live_rows(args.n_live, n), k = args.w.columns();
    const std::int64_t run = ops::splitk_run(k, partial.rows());
    pool.parallel_for(outputs, 16, [&](std::int64_t begin, std::int64_t end) {
        std::vector<double> w;
        for (std::int64_t j = begin; j < end; ++j) {
            weight.load(j, w);
            for (std::int64_t s = 0; s < partial.rows(); ++s)
                for (std::int64_t i = 0; i < n; ++i) {
                    Dot dot;
                    for (std::int64_t at = s * run; i < live && at < std::min(k, s * run + run);
                         ++at)
                        dot.add(x.at(i, at), exactly(w[static_cast<std::size_t>(at)]));
                    const bool empty = i >= live || s * run >= k;
                    partial.set(s, i * outputs + j, empty ? Counted{} : dot.sum(tree_steps(run)));
                }
        }
    });
}

void splitk_reduce(const ops::SplitkReduceArgs& args, Errors& errors, ThreadPool&) {
    const In partial(args.partial, errors);
    Out y(args.y, errors);
    const std::int64_t live = live_rows(args.n_live, y.rows());
    for (std::int64_t i = 0; i < live; ++i)
        for (std::int64_t j = 0; j < y.columns(); ++j) {
            Counted sum;
            for (std::int64_t s = 0; s < partial.rows(); ++s) {
                const Counted part = partial.at(s, i * y.columns() + j);
                sum = s == 0 ? part : sum + part;
            }
            y.set(i, j, sum);
        }
    y.zero_from(live);
}

void gather_rows(const ops::GatherRowsArgs& args, Errors& errors, ThreadPool&) {
    const In x(args.x, errors);
    Out y(args.y, errors);
    for (std::int64_t i = 0; i < y.rows(); ++i) {
        const std::int64_t row = int_at(args.rows, i);
        if (row < 0)
            y.zero_row(i);
        for (std::int64_t j = 0; row >= 0 && j < y.columns(); ++j)
            y.set(i, j, x.at(row, j));
    }
}

// The quantisers of activations.
namespace {

template <typename Args> void quantise_rows(const Args& args, float global, Errors& errors) {
    const In x(args.x, errors);
    const std::int64_t live = live_rows(args.n_live, x.rows());
    std::vector<Counted> row;
    for (std::int64_t i = 0; i < live; ++i) {
        x.load(i, 0, x.columns(), row);
        quantise_row(row, i, args.q, args.scale, global, errors);
    }
    Out(args.q, errors).zero_from(live);
    if (!args.scale.empty())
        Out(args.scale, errors).zero_from(live);
}

} // namespace

void fp8_quant(const ops::Fp8QuantArgs& args, Errors& errors, ThreadPool&) {
    quantise_rows(args, args.static_scale, errors);
}

void nvfp4_quant(const ops::Nvfp4QuantArgs& args, Errors& errors, ThreadPool&) {
    quantise_rows(args, args.encode_scale, errors);
}

} // namespace lr::cpu::reference
