// SPDX-License-Identifier: Apache-2.0
//
// The fusion candidates of the traced graph's analysis (its section 3.6.2), with what it says of
// each, and the expansions into the expert backend's leaf ops.
#include "graph/plan.h"

namespace lr::graph {
namespace {

using model::LayerKind;

std::vector<Pattern> decode_gdn(std::vector<std::int32_t> numbers) {
    return {{Phase::kDecode, LayerKind::kGdn, std::move(numbers)}};
}

// The same nodes of both decode paths: the attention path's expert half is numbered one lower.
std::vector<Pattern> decode_both(std::vector<std::int32_t> gdn, std::int32_t attention_shift) {
    std::vector<std::int32_t> attention;
    for (std::int32_t number : gdn)
        attention.push_back(number >= kNextLayer ? number : number + attention_shift);
    return {{Phase::kDecode, LayerKind::kGdn, std::move(gdn)},
            {Phase::kDecode, LayerKind::kAttention, std::move(attention)}};
}

// Finalise and merge with the next layer's first norm and its input quantisation, which is node 3
// of a GDN layer and node 2 of an attention layer.
std::vector<Pattern> across_layers() {
    const std::int32_t norm = kNextLayer + 1, gdn = kNextLayer + 3, attention = kNextLayer + 2;
    return {
        {Phase::kDecode, LayerKind::kGdn, {23, 24, norm, gdn}, LayerKind::kGdn},
        {Phase::kDecode, LayerKind::kGdn, {23, 24, norm, attention}, LayerKind::kAttention},
        {Phase::kDecode, LayerKind::kAttention, {22, 23, norm, gdn}, LayerKind::kGdn},
        {Phase::kDecode, LayerKind::kAttention, {22, 23, norm, attention}, LayerKind::kAttention}};
}

std::vector<Rewrite> make_rewrites() {
    using enum RewriteKind;
    return {
        {"8+9",
         kFuse,
         decode_gdn({8, 9}),
         {},
         "one launch; y written and read once less where nobody else reads it",
         "y rounded to bf16 before the scale and the codes are taken",
         "norm reduces over a head's dv values, the token scale over all local heads"},
        {"16+18",
         kFuse,
         decode_both({16, 18}, -1),
         {},
         "one launch; the packed top-K is not written and read again",
         "ids, tie order, softmax over the chosen, pi in bf16",
         "top-K works a token at a time, the permutation needs all tokens; measured slower from "
         "160 "
         "experts on elsewhere",
         true},
        {"23+24",
         kFuse,
         decode_both({23, 24}, -1),
         {},
         "one launch; Y_r not written and read",
         "Y_r rounded to bf16 before eta * Y_s is added",
         "the wait for the down projection stays"},
        {"13+15",
         kFuse,
         decode_both({13, 15}, -1),
         {},
         "one launch; M read once less",
         "two independent quantisations of the same bf16 M",
         "consumers are on two lanes: both must be ordered after it"},
        {"15+16",
         kFuse,
         decode_both({15, 16}, -1),
         {},
         "one launch",
         "codes and scales of M; ids and pi",
         "different inputs and thread layouts; no bytes saved"},
        {"17+19",
         kFuse,
         decode_both({17, 19}, -1),
         {},
         "one launch; F_s not written and read",
         "F_s rounded to bf16 before the scale",
         "the shared branch has slack: off the critical path it gains nothing"},
        {"1+3",
         kFuse,
         decode_gdn({1, 3}),
         {},
         "one launch; H read once less",
         "H in bf16 still written for the BA product",
         "BA may start early today; the sum over ranks sits in it with several ranks"},
        {"11+13+15",
         kFuse,
         decode_both({11, 13, 15}, -1),
         {},
         "two launches; M read twice less",
         "M in bf16 still written for router and shared gate",
         "three consumers on two lanes; the sum over ranks sits in it with several ranks"},
        {"23+24+next.1+next.3",
         kFuse,
         across_layers(),
         {},
         "three launches; Y_r, U and H written and read less",
         "Y_r, U, the residual and H rounded where they are today",
         "crosses the layer boundary and, with several ranks, the sum over ranks"},
        {"6+7",
         kFuse,
         decode_gdn({6, 7}),
         {},
         "one launch; q, k, v not written and read",
         "conv output rounded to bf16",
         "one convolution history feeds several recurrent blocks: all must read it before it is "
         "overwritten",
         true},
        {"7+8",
         kFuse,
         decode_gdn({7, 8}),
         {},
         "one launch; o not written and read",
         "o rounded to bf16 before the norm",
         "a block must own a whole head's dv values"},
        {"6+7+8+9",
         kFuse,
         decode_gdn({6, 7, 8, 9}),
         {},
         "three launches; q, k, v, z, o and y not written and read",
         "conv output, o and y rounded to bf16; the token scale over all local heads",
         "four layouts at once: conv channels, state tiles, head norm, token scale",
         true},
        {"expand-routed-gate-up",
         kExpand,
         decode_both({21}, -1),
         {"gather", "gemm", "silu_mul", "quantise"},
         "nothing: the chain of a generic grouped GEMM, to measure each saving against",
         "gate and up rounded to bf16, F rounded to bf16 before its codes",
         "live rows only, by endpoints"},
        {"expand-routed-down",
         kExpand,
         decode_both({22}, -1),
         {"gemm"},
         "nothing",
         "Z rounded to bf16",
         "live rows only, by endpoints"},
    };
}

} // namespace

const std::vector<Rewrite>& all_rewrites() {
    static const std::vector<Rewrite> rewrites = make_rewrites();
    return rewrites;
}

} // namespace lr::graph
