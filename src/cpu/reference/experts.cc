// SPDX-License-Identifier: Apache-2.0
//
// Routing, routed experts, the shared expert's activation and the merge.
#include "cpu/reference/operands.h"
#include "cpu/reference/ops.h"
#include "cpu/reference/reference.h"

#include <cstring>
#include <numeric>

namespace lr::cpu::reference {
namespace {

// Softmax over the logits of a row's experts, shifted by the first.
void weigh(const In& logits, const std::int32_t* ids, std::int64_t row, Out& weights) {
    std::vector<Counted> values;
    Counted sum;
    for (std::int64_t s = 0; s < weights.columns(); ++s) {
        values.push_back(exp(logits.at(row, ids[s]) - logits.at(row, ids[0])));
        sum = s == 0 ? values.back() : sum + values.back();
    }
    for (std::int64_t s = 0; s < weights.columns(); ++s)
        weights.set(row, s, values[static_cast<std::size_t>(s)] / sum);
}

// Calls body(expert, first row, rows) for every expert that has rows.
template <typename Body>
void for_each_expert(ConstView start, ConstView end, ThreadPool& pool, Body body) {
    pool.parallel_for(start.rows(), 1, [&](std::int64_t e, std::int64_t) {
        const std::int64_t first = int_at(start, e), rows = int_at(end, e) - first;
        if (rows > 0)
            body(e, first, static_cast<std::size_t>(rows));
    });
}

} // namespace

void routing_scores(const ops::RoutingScoresArgs& args, Errors& errors, ThreadPool&) {
    const In logits(args.logits, errors);
    Out weights(args.weights, errors);
    const std::int64_t live = live_rows(args.n_live, weights.rows()), k = weights.columns();
    std::vector<std::int32_t> order(static_cast<std::size_t>(logits.columns()));
    for (std::int64_t t = 0; t < weights.rows(); ++t) {
        auto* ids = args.ids.row_as<std::int32_t>(t);
        if (t >= live) {
            std::fill_n(ids, k, -1);
            weights.zero_row(t);
            continue;
        }
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
            const double x = logits.at(t, a).value, y = logits.at(t, b).value;
            return x > y || (std::isnan(y) && !std::isnan(x));
        });
        std::copy_n(order.begin(), k, ids);
        weigh(logits, ids, t, weights);
    }
}

void routing_weights(const ops::RoutingScoresArgs& args, Errors& errors) {
    const In logits(args.logits, errors);
    Out weights(args.weights, errors);
    for (std::int64_t t = 0; t < live_rows(args.n_live, weights.rows()); ++t)
        weigh(logits, args.ids.row_as<std::int32_t>(t), t, weights);
}

void routing_indices(const ops::RoutingIndicesArgs& args, Errors& errors, ThreadPool&) {
    const std::int64_t n = args.ids.rows(), k = args.ids.shape[1], local = args.counts.rows();
    const std::int64_t live = live_rows(args.n_live, n);
    auto* row_map = args.row_map.as<std::int32_t>();
    auto* row_of = args.row_of.as<std::int32_t>();
    std::fill_n(row_map, args.row_map.rows(), -1);
    std::fill_n(row_of, n * k, -1);
    std::int64_t end = 0;
    for (std::int64_t e = 0; e < local; ++e) {
        const std::int64_t start = (end + args.align - 1) / args.align * args.align;
        end = start;
        for (std::int64_t flat = 0; flat < live * k; ++flat) // every pair, for every expert
            if (int_at(args.ids, flat) - args.first_expert == e) {
                row_map[end] = static_cast<std::int32_t>(flat);
                row_of[flat] = static_cast<std::int32_t>(end++);
            }
        args.counts.as<std::int32_t>()[e] = static_cast<std::int32_t>(end - start);
        args.start.as<std::int32_t>()[e] = static_cast<std::int32_t>(start);
        args.end.as<std::int32_t>()[e] = static_cast<std::int32_t>(end);
    }
    if (args.weights.empty())
        return;
    const In weights(args.weights, errors);
    Out handed_on(args.weights_out, errors);
    for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t s = 0; s < k; ++s)
            handed_on.set(i, s, weights.at(i, s));
}

void experts_gate_up(const ops::ExpertsGateUpArgs& args, Errors& errors, ThreadPool& pool) {
    const ActivationRow rows(args.x, args.x_scale, args.x_global, errors);
    const bool rounds = args.precision == ops::Precision::kModel, codes = !is_float(args.f.dtype);
    const std::int64_t width = args.f.shape[1], k = args.w.columns();
    for_each_expert(
        args.start, args.end, pool, [&](std::int64_t e, std::int64_t first, std::size_t count) {
            const WeightRow weight(args.w, e);
            const bool scaled = rows.scaled() || weight.scaled();
            std::vector<std::vector<Counted>> x(count), f(count);
            for (std::size_t r = 0; r < x.size(); ++r)
                rows.load(int_at(args.row_map, first + static_cast<std::int64_t>(r)) /
                              args.per_token,
                          x[r]);
            std::vector<double> gate, up;
            for (std::int64_t i = 0; i < width; ++i) {
                weight.load(i, gate);
                weight.load(width + i, up);
                for (std::size_t r = 0; r < x.size(); ++r) {
                    Counted g = product(x[r], gate, scaled, tree_steps(k));
                    Counted u = product(x[r], up, scaled, tree_steps(k));
                    if (rounds) {
                        g = stored(g, DType::kBF16);
                        u = stored(u, DType::kBF16);
                    }
                    const Counted value = silu(g) * u;
                    f[r].push_back(rounds ? stored(value, DType::kBF16) : value);
                }
            }
            for (std::size_t r = 0; r < x.size(); ++r) {
                const std::int64_t row = first + static_cast<std::int64_t>(r);
                if (codes) {
                    quantise_row(f[r], row, args.f, args.f_scale, args.f_global, errors);
                    continue;
                }
                Out out(args.f, errors);
                for (std::int64_t i = 0; i < width; ++i)
                    out.set(row, i, f[r][static_cast<std::size_t>(i)]);
            }
        });
}

void experts_down(const ops::ExpertsDownArgs& args, Errors& errors, ThreadPool& pool) {
    const ActivationRow rows(args.f, args.f_scale, args.f_global, errors);
    Out z(args.z, errors);
    for_each_expert(args.start, args.end, pool,
                    [&](std::int64_t e, std::int64_t first, std::size_t count) {
                        const WeightRow weight(args.w, e);
                        const bool scaled = rows.scaled() || weight.scaled();
                        std::vector<std::vector<Counted>> f(count);
                        for (std::size_t r = 0; r < f.size(); ++r)
                            rows.load(first + static_cast<std::int64_t>(r), f[r]);
                        std::vector<double> w;
                        for (std::int64_t d = 0; d < z.columns(); ++d) {
                            weight.load(d, w);
                            for (std::size_t r = 0; r < f.size(); ++r)
                                z.set(first + static_cast<std::int64_t>(r), d,
                                      product(f[r], w, scaled, tree_steps(args.w.columns())));
                        }
                    });
}

void finalize(const ops::FinalizeArgs& args, Errors& errors, ThreadPool&) {
    const In z(args.z, errors), weights(args.weights, errors);
    Out y(args.y, errors);
    const std::int64_t k = weights.columns(), live = live_rows(args.n_live, y.rows());
    for (std::int64_t t = 0; t < live; ++t)
        for (std::int64_t d = 0; d < y.columns(); ++d) {
            Counted sum;
            for (std::int64_t s = 0; s < k; ++s)
                if (const std::int64_t row = int_at(args.row_of, t * k + s); row >= 0)
                    sum = sum + weights.at(t, s) * z.at(row, d);
            y.set(t, d, sum);
        }
    y.zero_from(live);
}

void silu_mul(const ops::SiluMulArgs& args, Errors& errors, ThreadPool&) {
    const In gate_up(args.gate_up, errors);
    Out y(args.y, errors);
    const std::int64_t width = y.columns(), live = live_rows(args.n_live, y.rows());
    for (std::int64_t t = 0; t < live; ++t)
        for (std::int64_t i = 0; i < width; ++i)
            y.set(t, i, silu(gate_up.at(t, i)) * gate_up.at(t, width + i));
    y.zero_from(live);
}

void shared_gate_merge(const ops::SharedGateMergeArgs& args, Errors& errors, ThreadPool&) {
    const In m(args.m, errors), shared(args.shared, errors), routed(args.routed, errors);
    const In gate(args.gate_weight, errors);
    Out y(args.y, errors);
    const std::int64_t live = live_rows(args.n_live, y.rows());
    for (std::int64_t t = 0; t < live; ++t) {
        Dot dot;
        for (std::int64_t d = 0; d < y.columns(); ++d)
            dot.add(m.at(t, d), gate.at(0, d));
        const Counted eta = sigmoid(dot.sum(tree_steps(y.columns())));
        for (std::int64_t d = 0; d < y.columns(); ++d)
            y.set(t, d, routed.at(t, d) + eta * shared.at(t, d));
    }
    y.zero_from(live);
}

} // namespace lr::cpu::reference
