// SPDX-License-Identifier: Apache-2.0
//
// Combine of comm/local: a token's rank finds its rows by the place that dispatch gave them, makes
// sure that they are its own, and adds them up where they lie.
#include "comm/expert_rows.h"
#include "comm/local_rank.h"
#include "numerics/convert.h"

#include <array>
#include <cstring>
#include <span>
#include <vector>

namespace lr::comm {
namespace {

constexpr std::int64_t kPiece = 512;  // floats added at a time
constexpr std::int64_t kRowGrain = 4; // sums of one thread's turn

// The views of a combine call: results, then what says whose they are.
enum : std::size_t { kResult, kCounts, kOwner };

// weight * a row.
struct Term {
    ConstView rows;
    std::int64_t row;
    float weight;
};

// The terms of many sums, one sum after the other.
class Sums {
  public:
    void add(const Term& term) { terms_.push_back(term); }
    void end_sum(std::int64_t row) {
        rows_.push_back(row);
        ends_.push_back(terms_.size());
    }

    // y[row] = its terms in their order, in f32 and rounded once.
    void store(View y, ThreadPool& pool) const {
        pool.parallel_for(std::ssize(rows_), kRowGrain, [&](std::int64_t begin, std::int64_t end) {
            for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
                const std::size_t first = i == 0 ? 0 : ends_[i - 1];
                store_sum(y, rows_[i], std::span(terms_).subspan(first, ends_[i] - first));
            }
        });
    }

  private:
    static void store_sum(View y, std::int64_t row, std::span<const Term> terms) {
        std::array<float, kPiece> sum, value;
        const std::int64_t width = y.shape.row_count();
        for (std::int64_t first = 0; first < width; first += kPiece) {
            const std::int64_t count = std::min(kPiece, width - first);
            std::fill_n(sum.begin(), count, 0.0f);
            for (const Term& term : terms) {
                const DType dtype = term.rows.dtype;
                numerics::decode_to_f32(dtype, term.rows.row(term.row) + dtype_bytes(dtype, first),
                                        count, value.data());
                for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i)
                    sum[i] += term.weight * value[i];
            }
            numerics::encode_from_f32(y.dtype, sum.data(), count,
                                      y.row(row) + dtype_bytes(y.dtype, first));
        }
    }

    std::vector<Term> terms_;
    std::vector<std::size_t> ends_;
    std::vector<std::int64_t> rows_;
};

// Whether row `row` of a slab came from this rank, token and slot.
bool is_source(ConstView source, std::int64_t row, std::array<std::int64_t, 3> expected) {
    const auto* found = source.as<std::int32_t>() + row * 3;
    return std::equal(expected.begin(), expected.end(), found);
}

float weight_at(ConstView weights, std::int64_t row, std::int64_t column) {
    float weight = 0;
    numerics::decode_to_f32(weights.dtype, weights.row(row) + dtype_bytes(weights.dtype, column), 1,
                            &weight);
    return weight;
}

void zero_rows(View y, std::int64_t first) {
    for (std::int64_t i = first; i < y.rows(); ++i)
        std::memset(y.row(i), 0,
                    static_cast<std::size_t>(dtype_bytes(y.dtype, y.shape.row_count())));
}

// One sum a live row of the blocks: its token's share of this rank.
Status sum_slots(const RankMajor& from, const RankMajorResult& result, ThreadPool& pool) {
    const std::int64_t capacity = from.rows.shape[1], slots = from.ids.shape[2];
    const ConstView weights = flat(from.weights);
    Sums sums;
    for (std::int64_t s = 0; s < from.rows.shape[0]; ++s)
        for (std::int64_t row = s * capacity; row < s * capacity + int_at(from.counts, s); ++row) {
            for (std::int64_t k = 0; k < slots; ++k) {
                if (int_at(from.ids, row * slots + k) < 0)
                    continue;
                const std::int32_t z_row = int_at(result.row_of, row * slots + k);
                if (z_row < 0 || z_row >= result.z.rows())
                    return fail(Code::kInternal,
                                "block of rank {}, row {}, slot {}: expected a row of z in 0..{}, "
                                "got {}",
                                s, row - s * capacity, k, result.z.rows() - 1, z_row);
                sums.add({result.z, z_row, weight_at(weights, row, k)});
            }
            sums.end_sum(row);
        }
    sums.store(flat(result.partial), pool);
    return {};
}

} // namespace

Status LocalRank::combine(std::string_view at, const Tokens& tokens, const ExpertMajor& from,
                          ConstView z, View y) {
    if (Status status = check(tokens, from, size(), z, y); !status.ok())
        return refuse(status.with_context(fmt::format("combine at {}", at)));
    LR_TRY(meet({.operation = "combine, expert-major,",
                 .at = at,
                 .dtype = z.dtype,
                 .shape = z.shape,
                 .views = {z, from.counts, from.source}}));
    const std::int64_t local = z.shape[0], capacity = z.shape[1], slots = tokens.ids.shape[1];
    const std::int64_t mine = live_rows(tokens.n_live, tokens.x.rows());
    Sums sums;
    for (std::int64_t t = 0; t < mine; ++t) {
        for (std::int64_t k = 0; k < slots; ++k) {
            const std::int32_t e = int_at(tokens.ids, t, k);
            if (e < 0)
                continue;
            const auto owner = static_cast<int>(e / local);
            const std::int64_t row = int_at(from.row_of, t, k);
            const std::int64_t place = row - e % local * capacity;
            if (owner >= size() || place < 0 ||
                place >= int_at(theirs(owner, kCounts), e % local) ||
                !is_source(theirs(owner, kOwner), row, {member_, t, k}))
                return give_up(fail(Code::kInternal,
                                    "combine at {}: token {} slot {} of rank {} is not row {} of "
                                    "expert {} on rank {}",
                                    at, t, k, member_, place, e, owner));
            sums.add({flat(theirs(owner, kResult)), row, weight_at(tokens.weights, t, k)});
        }
        sums.end_sum(t);
    }
    sums.store(y, pool_);
    zero_rows(y, mine);
    return release(at);
}

Status LocalRank::combine(std::string_view at, const Tokens& tokens, const RankMajor& from,
                          const RankMajorResult& result, View y) {
    Status ready = check(tokens, from, size(), result, y);
    if (ready.ok())
        ready = sum_slots(from, result, pool_);
    if (!ready.ok())
        return refuse(ready.with_context(fmt::format("combine at {}", at)));
    LR_TRY(meet({.operation = "combine, rank-major,",
                 .at = at,
                 .dtype = result.partial.dtype,
                 .shape = result.partial.shape,
                 .views = {result.partial, from.counts, from.tokens}}));
    const std::int64_t capacity = from.rows.shape[1];
    const std::int64_t mine = live_rows(tokens.n_live, tokens.x.rows());
    Sums sums;
    for (std::int64_t t = 0; t < mine; ++t) {
        for (int r = 0; r < size(); ++r) {
            const std::int64_t place = int_at(from.row_of, t, r);
            if (place < 0)
                continue;
            const std::int64_t row = member_ * capacity + place;
            if (place >= int_at(theirs(r, kCounts), member_) || int_at(theirs(r, kOwner), row) != t)
                return give_up(fail(Code::kInternal,
                                    "combine at {}: token {} of rank {} is not row {} of its "
                                    "block on rank {}",
                                    at, t, member_, place, r));
            sums.add({flat(theirs(r, kResult)), row, 1.0f});
        }
        sums.end_sum(t);
    }
    sums.store(y, pool_);
    zero_rows(y, mine);
    return release(at);
}

} // namespace lr::comm
