// SPDX-License-Identifier: Apache-2.0
//
// The chunked gated delta rule, one value head of one chunk at a time (prefill-gdn 11, 13-15, 17).
#include "cpu/reference/ops.h"

namespace lr::cpu::reference {
namespace {

// Rows [row, row + length) of the batch.
struct Chunk {
    std::int64_t row, length;
};

Chunk chunk_at(ConstView rows, ConstView lengths, std::int64_t c) {
    return {int_at(rows, c), int_at(lengths, c)};
}

using Vector = std::vector<Counted>;

Vector head_of(const In& in, std::int64_t row, std::int64_t head, std::int64_t width) {
    Vector x;
    in.load(row, head * width, width, x);
    return x;
}

// An operand of a product: rounded to bf16 where the model rounds.
Counted operand(Counted x, ops::Precision precision) {
    return precision == ops::Precision::kModel ? stored(x, DType::kBF16) : x;
}

Counted inner(const Vector& a, const Vector& b) {
    Dot dot;
    for (std::size_t i = 0; i < a.size(); ++i)
        dot.add(a[i], b[i]);
    return dot.sum(chain_steps(std::ssize(a)));
}

// Calls body(chunk, value head, key head) for every head of every used chunk.
template <typename Body> void for_each_head(ConstView rows, ConstView lengths, std::int64_t hk,
                                            std::int64_t hv, ThreadPool& pool, Body body) {
    pool.parallel_for(rows.rows() * hv, 1, [&](std::int64_t item, std::int64_t) {
        const std::int64_t c = item / hv, h = item % hv;
        const Chunk chunk = chunk_at(rows, lengths, c);
        if (chunk.length > 0)
            body(c, chunk, h, h / (hv / hk));
    });
}

} // namespace

void chunk_cumsum(const ops::ChunkCumsumArgs& args, Errors& errors, ThreadPool&) {
    const In g(args.g, errors);
    Out sum(args.g_cumsum, errors);
    for (std::int64_t c = 0; c < args.chunk_row.rows(); ++c) {
        const Chunk chunk = chunk_at(args.chunk_row, args.chunk_len, c);
        for (std::int64_t h = 0; h < sum.columns(); ++h) {
            Counted total;
            for (std::int64_t i = 0; i < chunk.length; ++i) {
                const Counted next = g.at(chunk.row + i, h);
                total = i == 0 ? next : total + next;
                sum.set(chunk.row + i, h, total);
            }
        }
    }
    sum.zero_from(live_rows(args.n_live, sum.rows()));
}

void chunk_kkt_solve(const ops::ChunkKktSolveArgs& args, Errors& errors, ThreadPool& pool) {
    const In k(args.k, errors), beta(args.beta, errors), g(args.g_cumsum, errors);
    Out out(args.a_inv, errors);
    const std::int64_t hk = args.k.shape[1], dk = args.k.shape[2], hv = args.a_inv.shape[1];
    for_each_head(
        args.chunk_row, args.chunk_len, hk, hv, pool,
        [&](std::int64_t, Chunk chunk, std::int64_t h, std::int64_t key_head) {
            const auto length = static_cast<std::size_t>(chunk.length);
            std::vector<Vector> keys, a(length, Vector(length)), x(length, Vector(length));
            for (std::int64_t i = 0; i < chunk.length; ++i)
                keys.push_back(head_of(k, chunk.row + i, key_head, dk));
            const auto row = [&](std::size_t i) {
                return chunk.row + static_cast<std::int64_t>(i);
            };
            for (std::size_t i = 0; i < length; ++i)
                for (std::size_t j = 0; j < i; ++j)
                    a[i][j] = beta.at(row(i), h) * inner(keys[i], keys[j]) *
                              exp(g.at(row(i), h) - g.at(row(j), h));
            for (std::size_t j = 0; j < length; ++j) {
                x[j][j] = exactly(1);
                for (std::size_t i = j + 1; i < length; ++i) {
                    Dot dot;
                    dot.add(a[i][j], exactly(1));
                    for (std::size_t m = j + 1; m < i; ++m)
                        dot.add(a[i][m], x[m][j]);
                    x[i][j] = -dot.sum(chain_steps(static_cast<std::int64_t>(i - j)));
                }
            }
            for (std::size_t i = 0; i < length; ++i)
                for (std::size_t j = 0; j <= i; ++j)
                    out.set(row(i), h * ops::kGdnChunk + static_cast<std::int64_t>(j), x[i][j]);
        });
}

void chunk_recompute_wu(const ops::ChunkRecomputeWuArgs& args, Errors& errors, ThreadPool& pool) {
    const In k(args.k, errors), v(args.v, errors), beta(args.beta, errors);
    const In g(args.g_cumsum, errors), a_inv(args.a_inv, errors);
    Out w(args.w, errors), u(args.u, errors);
    const std::int64_t hk = args.k.shape[1], dk = args.k.shape[2];
    const std::int64_t hv = args.v.shape[1], dv = args.v.shape[2];
    for_each_head(args.chunk_row, args.chunk_len, hk, hv, pool,
                  [&](std::int64_t, Chunk chunk, std::int64_t h, std::int64_t key_head) {
                      const auto sums = [&](const In& in, std::int64_t head, std::int64_t width,
                                            bool decays, Out& out) {
                          for (std::int64_t d = 0; d < width; ++d) {
                              Vector scaled;
                              for (std::int64_t j = 0; j < chunk.length; ++j) {
                                  const std::int64_t row = chunk.row + j;
                                  Counted factor = beta.at(row, h);
                                  if (decays)
                                      factor = factor * exp(g.at(row, h));
                                  scaled.push_back(operand(factor * in.at(row, head * width + d),
                                                           args.precision));
                              }
                              for (std::int64_t i = 0; i < chunk.length; ++i) {
                                  Dot dot;
                                  for (std::int64_t j = 0; j <= i; ++j)
                                      dot.add(a_inv.at(chunk.row + i, h * ops::kGdnChunk + j),
                                              scaled[static_cast<std::size_t>(j)]);
                                  out.set(chunk.row + i, h * width + d,
                                          dot.sum(chain_steps(i + 1)));
                              }
                          }
                      };
                      sums(v, h, dv, false, u);
                      sums(k, key_head, dk, true, w);
                  });
    w.zero_from(live_rows(args.n_live, w.rows()));
    u.zero_from(live_rows(args.n_live, u.rows()));
}

namespace {

// One value head of one sequence through its chunks.
class StateWalk {
  public:
    StateWalk(const ops::ChunkStateArgs& args, Errors& errors, std::int64_t head)
        : args_(args), k_(args.k, errors), w_(args.w, errors), u_(args.u, errors),
          g_(args.g_cumsum, errors), h_(args.h, errors), v_new_(args.v_new, errors), head_(head),
          key_head_(head / (args.u.shape[1] / args.k.shape[1])), dk_(args.k.shape[2]),
          dv_(args.u.shape[2]) {}

    // [dv, dk], of the whole head.
    Vector state;

    void step(std::int64_t c, Chunk chunk) {
        for (std::int64_t e = 0; e < dv_ * dk_; ++e)
            h_.set(c, head_ * dv_ * dk_ + e, state[static_cast<std::size_t>(e)]);
        std::vector<Vector> values = new_values(chunk);
        const Counted last = g_.at(chunk.row + chunk.length - 1, head_);
        for (std::int64_t i = 0; i < chunk.length; ++i) {
            const Counted decay = exp(last - g_.at(chunk.row + i, head_));
            for (Counted& v : values[static_cast<std::size_t>(i)])
                v = operand(v * decay, args_.precision);
        }
        advance(chunk, values, exp(last));
    }

    void zero(std::int64_t c, Chunk chunk) {
        for (std::int64_t e = 0; e < dv_ * dk_; ++e)
            h_.set(c, head_ * dv_ * dk_ + e, {});
        for (std::int64_t i = 0; i < chunk.length; ++i)
            for (std::int64_t d = 0; d < dv_; ++d)
                v_new_.set(chunk.row + i, head_ * dv_ + d, {});
    }

  private:
    // [length, dv] unrounded: u - S w.
    std::vector<Vector> new_values(Chunk chunk) {
        Vector read = state;
        for (Counted& s : read)
            s = operand(s, args_.precision);
        std::vector<Vector> values;
        for (std::int64_t i = 0; i < chunk.length; ++i) {
            const Vector w = head_of(w_, chunk.row + i, head_, dk_);
            Vector& row = values.emplace_back();
            for (std::int64_t d = 0; d < dv_; ++d) {
                Dot dot;
                for (std::int64_t j = 0; j < dk_; ++j)
                    dot.add(read[static_cast<std::size_t>(d * dk_ + j)],
                            w[static_cast<std::size_t>(j)]);
                row.push_back(u_.at(chunk.row + i, head_ * dv_ + d) - dot.sum(chain_steps(dk_)));
                v_new_.set(chunk.row + i, head_ * dv_ + d, row.back());
            }
        }
        return values;
    }

    void advance(Chunk chunk, const std::vector<Vector>& values, Counted decay) {
        std::vector<Vector> keys;
        for (std::int64_t i = 0; i < chunk.length; ++i)
            keys.push_back(head_of(k_, chunk.row + i, key_head_, dk_));
        for (std::int64_t d = 0; d < dv_; ++d)
            for (std::int64_t j = 0; j < dk_; ++j) {
                Counted& s = state[static_cast<std::size_t>(d * dk_ + j)];
                Dot dot;
                dot.add(decay * s, exactly(1));
                for (std::size_t i = 0; i < values.size(); ++i)
                    dot.add(values[i][static_cast<std::size_t>(d)],
                            keys[i][static_cast<std::size_t>(j)]);
                s = dot.sum(chain_steps(chunk.length + 1));
            }
    }

    const ops::ChunkStateArgs& args_;
    In k_, w_, u_, g_;
    Out h_, v_new_;
    std::int64_t head_, key_head_, dk_, dv_;
};

} // namespace

void chunk_state(const ops::ChunkStateArgs& args, Errors& errors, ThreadPool& pool) {
    const In old(args.ssm_state, errors);
    Out stored_state(args.ssm_state, errors), v_new(args.v_new, errors);
    const std::int64_t hv = args.u.shape[1], size = args.u.shape[2] * args.k.shape[2];
    pool.parallel_for(args.slot.rows() * hv, 1, [&](std::int64_t item, std::int64_t) {
        const std::int64_t s = item / hv, head = item % hv;
        const std::int64_t begin = int_at(args.seq_chunk, s), end = int_at(args.seq_chunk, s + 1);
        const std::int64_t slot = int_at(args.slot, s);
        StateWalk walk(args, errors, head);
        const bool continues = args.mask.empty() || int_at(args.mask, s) != 0;
        walk.state.resize(static_cast<std::size_t>(size));
        if (slot >= 0 && continues)
            old.load(slot, head * size, size, walk.state);
        for (std::int64_t c = begin; c < end; ++c) {
            const Chunk chunk = chunk_at(args.chunk_row, args.chunk_len, c);
            if (slot < 0)
                walk.zero(c, chunk);
            else
                walk.step(c, chunk);
        }
        for (std::int64_t e = 0; slot >= 0 && begin < end && e < size; ++e)
            stored_state.set(slot, head * size + e, walk.state[static_cast<std::size_t>(e)]);
    });
    v_new.zero_from(live_rows(args.n_live, v_new.rows()));
}

void chunk_output(const ops::ChunkOutputArgs& args, Errors& errors, ThreadPool& pool) {
    const In q(args.q, errors), k(args.k, errors), v_new(args.v_new, errors), h(args.h, errors);
    const In g(args.g_cumsum, errors);
    Out o(args.o, errors);
    const std::int64_t hk = args.k.shape[1], dk = args.k.shape[2];
    const std::int64_t hv = args.v_new.shape[1], dv = args.v_new.shape[2];
    const Counted scale = exactly(1) / sqrt(exactly(static_cast<double>(dk)));
    for_each_head(args.chunk_row, args.chunk_len, hk, hv, pool,
                  [&](std::int64_t c, Chunk chunk, std::int64_t head, std::int64_t key_head) {
                      std::vector<Vector> keys;
                      for (std::int64_t i = 0; i < chunk.length; ++i)
                          keys.push_back(head_of(k, chunk.row + i, key_head, dk));
                      for (std::int64_t i = 0; i < chunk.length; ++i) {
                          const std::int64_t row = chunk.row + i;
                          const Vector query = head_of(q, row, key_head, dk);
                          Vector scores;
                          for (std::int64_t j = 0; j <= i; ++j)
                              scores.push_back(
                                  operand(inner(query, keys[static_cast<std::size_t>(j)]) *
                                              exp(g.at(row, head) - g.at(chunk.row + j, head)),
                                          args.precision));
                          const Counted decay = exp(g.at(row, head));
                          for (std::int64_t d = 0; d < dv; ++d) {
                              Dot read, own;
                              for (std::int64_t j = 0; j < dk; ++j)
                                  read.add(h.at(c, (head * dv + d) * dk + j),
                                           query[static_cast<std::size_t>(j)]);
                              // Added to what was read, or apart: a chain over both in either case.
                              own.add(decay * read.sum(chain_steps(dk)), exactly(1));
                              for (std::int64_t j = 0; j <= i; ++j)
                                  own.add(scores[static_cast<std::size_t>(j)],
                                          v_new.at(chunk.row + j, head * dv + d));
                              o.set(row, head * dv + d, scale * own.sum(chain_steps(i + 2)));
                          }
                      }
                  });
}

} // namespace lr::cpu::reference
