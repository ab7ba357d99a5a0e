// SPDX-License-Identifier: Apache-2.0
#include "comm/expert_layout.h"

#include "core/dims.h"

namespace lr::comm {
namespace {

// Letters shared by every view of one call.
struct Letters {
    Dim n{"n"}, d{"D"}, k{"K"}, w, l, r{"R"}, c{"C"};

    Letters(const Tokens& tokens, int ranks) : w("W", ranks), l("L", tokens.experts / ranks) {}
};

constexpr auto kI32 = {DType::kI32};
constexpr auto kSummed = {DType::kBF16, DType::kF32};

void match_tokens(ShapeCheck& check, Letters& at, const Tokens& tokens) {
    check.match("x", tokens.x, {at.n, at.d}, {tokens.x.dtype});
    check.match("ids", tokens.ids, {at.n, at.k}, kI32);
    check.match("weights", tokens.weights, {at.n, at.k}, kSummed);
    check.match("n_live", tokens.n_live, {1}, kI32);
    check.require(tokens.experts >= 1 && tokens.experts % at.w.value() == 0,
                  fmt::format("experts: expected a multiple of the {} ranks, got {}", at.w.value(),
                              tokens.experts));
}

void match_slab(ShapeCheck& check, Letters& at, const Tokens& tokens, const ExpertMajor& slab) {
    check.match("rows", slab.rows, {at.l, at.r, at.d}, {tokens.x.dtype});
    check.match("counts", slab.counts, {at.l}, kI32);
    check.match("source", slab.source, {at.l, at.r, 3}, kI32);
    check.match("row_of", slab.row_of, {at.n, at.k}, kI32);
    check.require(slab.rows.dense() && slab.source.dense(), "slab: expected dense rows");
}

void match_blocks(ShapeCheck& check, Letters& at, const Tokens& tokens, const RankMajor& blocks) {
    check.match("rows", blocks.rows, {at.w, at.c, at.d}, {tokens.x.dtype});
    check.match("counts", blocks.counts, {at.w}, kI32);
    check.match("tokens", blocks.tokens, {at.w, at.c}, kI32);
    check.match("ids", blocks.ids, {at.w, at.c, at.k}, kI32);
    check.match("weights", blocks.weights, {at.w, at.c, at.k}, {tokens.weights.dtype});
    check.match("row_of", blocks.row_of, {at.n, at.w}, kI32);
    check.require(blocks.rows.dense() && blocks.tokens.dense() && blocks.ids.dense() &&
                      blocks.weights.dense(),
                  "blocks: expected dense rows");
}

} // namespace

Status check(const Tokens& tokens, const ExpertMajor& to, int ranks) {
    ShapeCheck check("expert layout");
    Letters at(tokens, ranks);
    match_tokens(check, at, tokens);
    match_slab(check, at, tokens, to);
    return check.status();
}

Status check(const Tokens& tokens, const RankMajor& to, int ranks) {
    ShapeCheck check("expert layout");
    Letters at(tokens, ranks);
    match_tokens(check, at, tokens);
    match_blocks(check, at, tokens, to);
    return check.status();
}

Status check(const Tokens& tokens, const ExpertMajor& from, int ranks, ConstView z, ConstView y) {
    ShapeCheck check("expert layout");
    Letters at(tokens, ranks);
    match_tokens(check, at, tokens);
    match_slab(check, at, tokens, from);
    check.match("z", z, {at.l, at.r, at.d}, kSummed);
    check.match("y", y, {at.n, at.d}, kSummed);
    check.require(z.dense(), "z: expected dense rows");
    return check.status();
}

Status check(const Tokens& tokens, const RankMajor& from, int ranks, const RankMajorResult& result,
             ConstView y) {
    ShapeCheck check("expert layout");
    Letters at(tokens, ranks);
    Dim rows("rows");
    match_tokens(check, at, tokens);
    match_blocks(check, at, tokens, from);
    check.match("z", result.z, {rows, at.d}, kSummed);
    check.match("row_of", result.row_of, {at.w, at.c, at.k}, kI32);
    check.match("partial", result.partial, {at.w, at.c, at.d}, kSummed);
    check.match("y", y, {at.n, at.d}, kSummed);
    check.require(result.row_of.dense() && result.partial.dense(),
                  "partial, row_of: expected dense rows");
    return check.status();
}

} // namespace lr::comm
