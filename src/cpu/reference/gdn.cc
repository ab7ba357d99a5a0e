// SPDX-License-Identifier: Apache-2.0
//
// Gated DeltaNet but for the chunked rule: convolution, gates, norms, the step of decode.
#include "cpu/reference/operands.h"
#include "cpu/reference/ops.h"

namespace lr::cpu::reference {
namespace {

constexpr std::int64_t kTaps = 4;

// SiLU of the four taps' sum; x oldest first.
Counted convolve(const std::vector<double>& w, const Counted (&x)[kTaps]) {
    Dot dot;
    for (std::int64_t t = 0; t < kTaps; ++t)
        dot.add(x[t], exactly(w[static_cast<std::size_t>(t)]));
    return silu(dot.sum(chain_steps(kTaps)));
}

// x / sqrt(sum x^2 + eps) for `width` elements from column `first`.
std::vector<Counted> unit_length(const In& in, std::int64_t row, std::int64_t first,
                                 std::int64_t width) {
    std::vector<Counted> x;
    in.load(row, first, width, x);
    Dot squares;
    for (const Counted& v : x)
        squares.add(v, v);
    const Counted length = sqrt(squares.sum(tree_steps(width)) + exactly(ops::kL2NormEps));
    // Divided, or multiplied by the reciprocal: a rounding more.
    const Counted inv = exactly(1) / length;
    for (Counted& v : x)
        v = v * inv;
    return x;
}

Counted log_decay(Counted a, Counted a_log, Counted dt_bias) {
    return -(exp(a_log) * softplus(a + dt_bias));
}

Counted write_strength(Counted b, ops::Precision precision) {
    const Counted beta = sigmoid(b);
    return precision == ops::Precision::kModel ? stored(beta, DType::kBF16) : beta;
}

std::int64_t slot_of(ConstView slot, ConstView n_live, std::int64_t row, std::int64_t n) {
    return row < live_rows(n_live, n) ? int_at(slot, row) : -1;
}

} // namespace

void unpack_conv(const ops::UnpackConvArgs& args, Errors& errors, ThreadPool&) {
    const In qkvz(args.qkvz, errors), ba(args.ba, errors), old(args.conv_state, errors);
    const WeightRow taps(args.conv, -1);
    Out q(args.q, errors), k(args.k, errors), v(args.v, errors), z(args.z, errors);
    Out b(args.b, errors), a(args.a, errors), state(args.conv_state, errors);
    const std::int64_t channels = args.conv.rows();
    std::vector<double> w;
    for (std::int64_t i = 0; i < q.rows(); ++i) {
        const std::int64_t slot = slot_of(args.slot, args.n_live, i, q.rows());
        if (slot < 0) {
            for (Out* out : {&q, &k, &v, &z, &b, &a})
                out->zero_row(i);
            continue;
        }
        for (std::int64_t c = 0; c < channels; ++c) {
            taps.load(c, w);
            const Counted x[kTaps] = {old.at(slot, 3 * c), old.at(slot, 3 * c + 1),
                                      old.at(slot, 3 * c + 2), qkvz.at(i, c)};
            const Counted u = convolve(w, x);
            if (c < q.columns())
                q.set(i, c, u);
            else if (c < q.columns() + k.columns())
                k.set(i, c - q.columns(), u);
            else
                v.set(i, c - q.columns() - k.columns(), u);
            for (std::int64_t t = 0; t < 3; ++t)
                state.set(slot, 3 * c + t, x[t + 1]);
        }
        for (std::int64_t j = 0; j < z.columns(); ++j)
            z.set(i, j, qkvz.at(i, channels + j));
        for (std::int64_t h = 0; h < b.columns(); ++h) {
            b.set(i, h, ba.at(i, h));
            a.set(i, h, ba.at(i, b.columns() + h));
        }
    }
}

void recurrent_update(const ops::RecurrentUpdateArgs& args, Errors& errors, ThreadPool& pool) {
    const In q(args.q, errors), k(args.k, errors), v(args.v, errors), b(args.b, errors);
    const In a(args.a, errors), a_log(args.a_log, errors), dt(args.dt_bias, errors);
    const In old(args.ssm_state, errors);
    Out state(args.ssm_state, errors), o(args.o, errors);
    const std::int64_t hk = args.q.shape[1], dk = args.q.shape[2];
    const std::int64_t hv = args.v.shape[1], dv = args.v.shape[2], n = o.rows();
    pool.parallel_for(n * hv, 1, [&](std::int64_t item, std::int64_t) {
        const std::int64_t i = item / hv, h = item % hv;
        const std::int64_t slot = slot_of(args.slot, args.n_live, i, n);
        for (std::int64_t d = 0; slot < 0 && d < dv; ++d)
            o.set(i, h * dv + d, {});
        if (slot < 0)
            return;
        const std::int64_t key_head = h / (hv / hk);
        const auto kn = unit_length(k, i, key_head * dk, dk);
        auto qn = unit_length(q, i, key_head * dk, dk);
        const Counted scale = exactly(1) / sqrt(exactly(static_cast<double>(dk)));
        for (Counted& x : qn)
            x = x * scale;
        const Counted alpha = exp(log_decay(a.at(i, h), a_log.at(h, 0), dt.at(h, 0)));
        const Counted beta = write_strength(b.at(i, h), args.precision);
        std::vector<Counted> s(static_cast<std::size_t>(dk));
        for (std::int64_t d = 0; d < dv; ++d) {
            const std::int64_t first = (h * dv + d) * dk;
            Dot predicted, read;
            for (std::int64_t j = 0; j < dk; ++j) {
                const auto at = static_cast<std::size_t>(j);
                s[at] = alpha * old.at(slot, first + j);
                predicted.add(s[at], kn[at]);
            }
            const Counted delta = beta * (v.at(i, h * dv + d) - predicted.sum(tree_steps(dk)));
            for (std::int64_t j = 0; j < dk; ++j) {
                const auto at = static_cast<std::size_t>(j);
                s[at] = s[at] + delta * kn[at];
                read.add(s[at], qn[at]);
                state.set(slot, first + j, s[at]);
            }
            o.set(i, h * dv + d, read.sum(tree_steps(dk)));
        }
    });
}

void gated_norm(const ops::GatedNormArgs& args, Errors& errors, ThreadPool&) {
    const In o(args.o, errors), z(args.z, errors), weight(args.weight, errors);
    Out y(args.y, errors);
    const std::int64_t dv = args.o.shape[2], live = live_rows(args.n_live, y.rows());
    for (std::int64_t i = 0; i < live; ++i)
        for (std::int64_t first = 0; first < y.columns(); first += dv) {
            Dot squares;
            for (std::int64_t j = first; j < first + dv; ++j)
                squares.add(o.at(i, j), o.at(i, j));
            const Counted mean = squares.sum(tree_steps(dv)) / exactly(static_cast<double>(dv));
            const Counted inv = exactly(1) / sqrt(mean + exactly(args.eps));
            for (std::int64_t j = first; j < first + dv; ++j)
                y.set(i, j,
                      o.at(i, j) * inv * weight.at(j - first, 0) * z.at(i, j) *
                          sigmoid(z.at(i, j)));
        }
    y.zero_from(live);
}

void initial_state_mask(const ops::InitialStateMaskArgs& args, Errors&, ThreadPool&) {
    for (std::int64_t s = 0; s < args.mask.rows(); ++s)
        args.mask.as<std::int32_t>()[s] = int_at(args.prefix_len, s) > 0 ? 1 : 0;
}

void causal_conv(const ops::CausalConvArgs& args, Errors& errors, ThreadPool&) {
    const In x(args.qkv, errors), state(args.conv_state, errors);
    const WeightRow taps(args.conv, -1);
    Out y(args.y, errors), new_state(args.conv_state, errors);
    y.zero_from(0);
    const std::int64_t live = live_rows(args.n_live, y.rows());
    std::vector<double> w;
    for (std::int64_t s = 0; s < args.slot.rows(); ++s) {
        const std::int64_t slot = int_at(args.slot, s), first = int_at(args.cu_seqlens, s);
        const std::int64_t count =
            std::min<std::int64_t>(int_at(args.cu_seqlens, s + 1), live) - first;
        const bool stored_state = int_at(args.mask, s) != 0;
        for (std::int64_t c = 0; slot >= 0 && count > 0 && c < y.columns(); ++c) {
            taps.load(c, w);
            // The three inputs before the sequence's first row, then its own.
            std::vector<Counted> in;
            for (std::int64_t t = 0; t < 3; ++t)
                in.push_back(stored_state ? state.at(slot, 3 * c + t) : Counted{});
            for (std::int64_t t = 0; t < count; ++t)
                in.push_back(x.at(first + t, c));
            for (std::int64_t t = 0; t < count; ++t) {
                const auto at = static_cast<std::size_t>(t);
                y.set(first + t, c, convolve(w, {in[at], in[at + 1], in[at + 2], in[at + 3]}));
            }
            for (std::int64_t t = 0; t < 3; ++t)
                new_state.set(slot, 3 * c + t, in[static_cast<std::size_t>(count + t)]);
        }
    }
}

void qkv_split(const ops::QkvSplitArgs& args, Errors& errors, ThreadPool&) {
    const In x(args.x, errors);
    Out q(args.q, errors), k(args.k, errors), v(args.v, errors);
    const std::int64_t live = live_rows(args.n_live, q.rows());
    std::int64_t first = 0;
    for (Out* out : {&q, &k, &v}) {
        for (std::int64_t i = 0; i < live; ++i)
            for (std::int64_t j = 0; j < out->columns(); ++j)
                out->set(i, j, x.at(i, first + j));
        out->zero_from(live);
        first += out->columns();
    }
}

void gating(const ops::GatingArgs& args, Errors& errors, ThreadPool&) {
    const In ba(args.ba, errors), a_log(args.a_log, errors), dt(args.dt_bias, errors);
    Out g(args.g, errors), beta(args.beta, errors);
    const std::int64_t heads = g.columns(), live = live_rows(args.n_live, g.rows());
    for (std::int64_t i = 0; i < live; ++i)
        for (std::int64_t h = 0; h < heads; ++h) {
            g.set(i, h, log_decay(ba.at(i, heads + h), a_log.at(h, 0), dt.at(h, 0)));
            beta.set(i, h, write_strength(ba.at(i, h), args.precision));
        }
    g.zero_from(live);
    beta.zero_from(live);
}

void l2norm(const ops::L2normArgs& args, Errors& errors, ThreadPool&) {
    const In x(args.x, errors);
    Out y(args.y, errors);
    const std::int64_t width = args.x.shape[2], live = live_rows(args.n_live, y.rows());
    for (std::int64_t i = 0; i < live; ++i)
        for (std::int64_t first = 0; first < y.columns(); first += width) {
            const auto unit = unit_length(x, i, first, width);
            for (std::int64_t j = 0; j < width; ++j)
                y.set(i, first + j, unit[static_cast<std::size_t>(j)]);
        }
    y.zero_from(live);
}

} // namespace lr::cpu::reference
