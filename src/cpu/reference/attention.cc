// SPDX-License-Identifier: Apache-2.0
//
// Full attention: norms and rotation, the cache, attention itself, the output gate.
#include "cpu/reference/ops.h"

#include <cstring>

namespace lr::cpu::reference {
namespace {

// The rotation of one position: cos and sin of each pair's angle.
std::vector<std::pair<Counted, Counted>> rotation(const ops::QkNormRopeGateArgs& args,
                                                  std::int64_t position) {
    std::vector<std::pair<Counted, Counted>> pairs;
    for (std::int32_t i = 0; i < args.rotary_dim / 2; ++i) {
        const float exponent = static_cast<float>(2 * i) / static_cast<float>(args.rotary_dim);
        const Counted power = elementary(std::pow(double{args.rope_theta}, double{exponent}), 0);
        const Counted angle = exactly(static_cast<double>(position)) * (exactly(1) / power);
        pairs.emplace_back(elementary(std::cos(angle.value), angle.error),
                           elementary(std::sin(angle.value), angle.error));
    }
    return pairs;
}

std::vector<Counted> norm_and_rotate(const ops::QkNormRopeGateArgs& args, const In& in,
                                     std::int64_t row, std::int64_t first, const In& weight,
                                     const std::vector<std::pair<Counted, Counted>>& turns) {
    const std::int64_t dh = args.k.shape[2];
    std::vector<Counted> x;
    in.load(row, first, dh, x);
    Dot squares;
    for (const Counted& v : x)
        squares.add(v, v);
    const Counted mean = squares.sum(tree_steps(dh)) / exactly(static_cast<double>(dh));
    const Counted inv = exactly(1) / sqrt(mean + exactly(args.eps));
    for (std::int64_t j = 0; j < dh; ++j) {
        Counted& v = x[static_cast<std::size_t>(j)];
        v = v * inv * (exactly(1) + weight.at(j, 0));
        if (args.precision == ops::Precision::kModel)
            v = stored(v, DType::kBF16);
    }
    for (std::size_t i = 0; i < turns.size(); ++i) {
        const auto [cosine, sine] = turns[i];
        const Counted low = x[i], high = x[i + turns.size()];
        x[i] = low * cosine - high * sine;
        x[i + turns.size()] = high * cosine + low * sine;
    }
    return x;
}

} // namespace

void qk_norm_rope_gate(const ops::QkNormRopeGateArgs& args, Errors& errors, ThreadPool& pool) {
    const In qg(args.qg, errors), k(args.k, errors), qw(args.q_norm, errors);
    const In kw(args.k_norm, errors);
    Out q(args.q, errors), gate(args.gate, errors), k_out(args.k_out, errors);
    const std::int64_t dh = args.k.shape[2], live = live_rows(args.n_live, k.rows());
    pool.parallel_for(live, 1, [&](std::int64_t i, std::int64_t) {
        const auto turns = rotation(args, int_at(args.positions, i));
        for (std::int64_t h = 0; h < args.q.shape[1]; ++h) {
            const auto x = norm_and_rotate(args, qg, i, 2 * h * dh, qw, turns);
            for (std::int64_t j = 0; j < dh; ++j) {
                q.set(i, h * dh + j, x[static_cast<std::size_t>(j)]);
                gate.set(i, h * dh + j, qg.at(i, (2 * h + 1) * dh + j));
            }
        }
        for (std::int64_t h = 0; h < args.k.shape[1]; ++h) {
            const auto x = norm_and_rotate(args, k, i, h * dh, kw, turns);
            for (std::int64_t j = 0; j < dh; ++j)
                k_out.set(i, h * dh + j, x[static_cast<std::size_t>(j)]);
        }
    });
    for (Out* out : {&q, &gate, &k_out})
        out->zero_from(live);
}

void kv_store(const ops::KvStoreArgs& args, Errors& errors, ThreadPool&) {
    const In k(args.k, errors), v(args.v, errors);
    Out k_cache(args.k_cache, errors), v_cache(args.v_cache, errors); // rows: pages
    const std::int64_t width = k.columns();
    for (std::int64_t i = 0; i < live_rows(args.n_live, k.rows()); ++i) {
        const std::int64_t slot = args.kv_slot.as<std::int64_t>()[i];
        for (std::int64_t j = 0; slot >= 0 && j < width; ++j) {
            const std::int64_t at = slot % ops::kKvPage * width + j;
            k_cache.set(slot / ops::kKvPage, at, k.at(i, j));
            v_cache.set(slot / ops::kKvPage, at, v.at(i, j));
        }
    }
}

void attention(const ops::AttentionArgs& args, Errors& errors, ThreadPool& pool) {
    const In q(args.q, errors), k(args.k_cache, errors), v(args.v_cache, errors);
    Out o(args.o, errors);
    const std::int64_t hq = args.q.shape[1], dh = args.q.shape[2], hkv = args.k_cache.shape[2];
    const std::int64_t live = live_rows(args.n_live, o.rows());
    pool.parallel_for(o.rows() * hq, 1, [&](std::int64_t item, std::int64_t) {
        const std::int64_t i = item / hq, h = item % hq, kv = h / (hq / hkv);
        const std::int64_t sequence = i < live ? int_at(args.row_seq, i) : -1;
        const std::int64_t seen = sequence < 0 ? 0 : int_at(args.positions, i) + 1;
        const auto place = [&](std::int64_t t) {
            const std::int64_t table = sequence * args.page_table.shape[1];
            return std::pair{int_at(args.page_table, table + t / ops::kKvPage),
                             (t % ops::kKvPage * hkv + kv) * dh};
        };
        std::vector<Counted> scores;
        double top = -INFINITY;
        for (std::int64_t t = 0; t < seen; ++t) {
            const auto [page, first] = place(t);
            Dot dot;
            for (std::int64_t j = 0; j < dh; ++j)
                dot.add(q.at(i, h * dh + j), k.at(page, first + j));
            scores.push_back(exactly(args.scale) * dot.sum(tree_steps(dh)));
            top = std::max(top, scores.back().value);
        }
        // A running maximum is exchanged at most once a page: two factors more each time.
        const double pages = static_cast<double>((seen + ops::kKvPage - 1) / ops::kKvPage);
        const double rescaled = pages * (kElementary + 2) * kUnit;
        Dot weights;
        for (Counted& s : scores) {
            s = exp(s - exactly(top));
            s.error += s.value * rescaled;
            weights.add(s, exactly(1));
        }
        for (std::int64_t j = 0; j < dh; ++j) {
            Dot sum;
            for (std::int64_t t = 0; t < seen; ++t) {
                const auto [page, first] = place(t);
                sum.add(scores[static_cast<std::size_t>(t)], v.at(page, first + j));
            }
            const double steps = chain_steps(seen) + pages;
            // Divided, or multiplied by the reciprocal.
            o.set(i, h * dh + j,
                  seen == 0 ? Counted{} : sum.sum(steps) * (exactly(1) / weights.sum(steps)));
        }
    });
}

void sigmoid_gate(const ops::SigmoidGateArgs& args, Errors& errors, ThreadPool&) {
    const In o(args.o, errors), gate(args.gate, errors);
    Out y(args.y, errors);
    const std::int64_t live = live_rows(args.n_live, y.rows());
    for (std::int64_t i = 0; i < live; ++i)
        for (std::int64_t j = 0; j < y.columns(); ++j)
            y.set(i, j, o.at(i, j) * sigmoid(gate.at(i, j)));
    y.zero_from(live);
}

} // namespace lr::cpu::reference
