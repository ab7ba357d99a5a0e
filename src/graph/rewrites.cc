// SPDX-License-Identifier: Apache-2.0
//
// The fusion candidates of the traced graph's analysis (its sections 3.6.2 to 3.6.5), with what it
// says of each, and the expansions into the expert backend's leaf ops.
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

template <typename Args> const Args& args_of(const Step& step, std::int32_t node) {
    return std::get<Args>(step.nodes[static_cast<std::size_t>(node)].args);
}

// The largest magnitude of each head's dv values: [n, Hv] f32.
std::int64_t head_maxima(const Step& step, const std::vector<std::int32_t>& nodes) {
    const auto& norm = args_of<ops::GatedNormArgs>(step, nodes.front());
    return norm.o.shape[0] * norm.o.shape[1] * 4;
}

// q and k normalised and in f32 where they were in the activations' type, the decay and beta in f32
// where a and b were.
std::int64_t prepared_qk_and_gates(const Step& step, const std::vector<std::int32_t>& nodes) {
    const auto& update = args_of<ops::RecurrentUpdateArgs>(step, nodes.back());
    std::int64_t bytes = 0;
    for (ConstView view : {update.q, update.k, update.a, update.b})
        bytes += view.shape.count() * 4 - view.bytes();
    return bytes;
}

std::vector<Rewrite> make_rewrites() {
    using enum RewriteKind;
    return {
        {.name = "8+9",
         .kind = kFuse,
         .patterns = decode_gdn({8, 9}),
         .vanishes = "one launch; y is neither written nor read where nobody else reads it",
         .keeps = "y rounded to bf16 before the scale and the codes are taken",
         .constraint =
             "norm reduces over a head's dv values, the token scale over all local heads; "
             "a block a token leaves most of the device idle at small n",
         .verdict = "first: arithmetic alone"},
        {.name = "8+9-amax",
         .kind = kShift,
         .patterns = decode_gdn({8, 9}),
         .stages = {"head_amax", "scale_and_codes"},
         .vanishes = "no launch; the pass over all of y that finds the token's scale",
         .keeps = "y rounded to bf16 before the maxima and the codes are taken; the token's scale "
                  "over all local heads",
         .constraint = "two smaller kernels instead of one wide one; each head hands its largest "
                       "magnitude on",
         .verdict = "beside 8+9: two faster kernels beat one slower",
         .handed_bytes = head_maxima},
        {.name = "16+18",
         .kind = kFuse,
         .patterns = decode_both({16, 18}, -1),
         .vanishes = "one launch; the packed top-K is neither written nor read",
         .keeps = "ids, tie order, softmax over the chosen, pi in bf16",
         .constraint = "top-K works a token at a time, the permutation needs all tokens; splitting "
                       "was a choice of layout and resources, so one kernel is not surely faster",
         .verdict = "first: compare the paths that exist",
         .grid_sync = true},
        {.name = "23+24",
         .kind = kFuse,
         .patterns = decode_both({23, 24}, -1),
         .vanishes = "one launch; Y_r is neither written nor read",
         .keeps = "Y_r rounded to bf16 before eta * Y_s is added",
         .constraint = "the wait for the down projection stays",
         .verdict = "direct: on the main chain"},
        {.name = "13+15",
         .kind = kFuse,
         .patterns = decode_both({13, 15}, -1),
         .vanishes = "one launch; M is read once less",
         .keeps = "two independent quantisations of the same bf16 M",
         .constraint = "consumers are on two lanes: both must be ordered after it",
         .verdict = "worth trying"},
        {.name = "15+16",
         .kind = kFuse,
         .patterns = decode_both({15, 16}, -1),
         .vanishes = "one launch; no bytes, since the inputs differ",
         .keeps = "codes and scales of M; ids and pi",
         .constraint = "blocks of 16 values and top-K of a row want different thread layouts",
         .verdict = "second choice at the routing entry"},
        {.name = "15-shared-lane",
         .kind = kMove,
         .patterns = decode_both({15}, -1),
         .vanishes = "nothing; the quantisation no longer queues behind the router",
         .keeps = "codes and scales of M",
         .constraint =
             "the routed product waits for the codes and for the routing, now on two lanes",
         .verdict = "before any fusion of it: it needs M alone",
         .lane = Lane::kShared},
        {.name = "17+19",
         .kind = kFuse,
         .patterns = decode_both({17, 19}, -1),
         .vanishes = "one launch; F_s is neither written nor read",
         .keeps = "F_s rounded to bf16 before the scale",
         .constraint = "the shared branch has slack: off the critical path it gains nothing",
         .verdict = "simple, and last in line"},
        {.name = "1+3",
         .kind = kFuse,
         .patterns = decode_gdn({1, 3}),
         .vanishes = "one launch; H is read once less",
         .keeps = "H in bf16 still written for the BA product; the residual",
         .constraint =
             "BA begins early today and must still; with several ranks the sum sits in it",
         .verdict = "with communication"},
        {.name = "11+13",
         .kind = kFuse,
         .patterns = decode_both({11, 13}, -1),
         .vanishes = "one launch; M is read once less",
         .keeps = "M in bf16 still written for router, routed quantisation and shared gate",
         .constraint = "consumers on two lanes; with several ranks the sum sits in it",
         .verdict = "with communication"},
        {.name = "11+13+15",
         .kind = kFuse,
         .patterns = decode_both({11, 13, 15}, -1),
         .vanishes = "two launches; M is read twice less",
         .keeps =
             "M in bf16 still written for router and shared gate; two independent quantisations",
         .constraint = "three consumers (bf16 router, FP8 shared, FP4 routed) on two lanes; with "
                       "several ranks the sum sits in it",
         .verdict = "with communication, after 13+15"},
        {.name = "23+24+next.1+next.3",
         .kind = kFuse,
         .patterns = across_layers(),
         .vanishes = "three launches; Y_r and U are neither written nor read, H is read once less",
         .keeps = "Y_r, U, the residual and H rounded where they are today",
         .constraint = "crosses the layer boundary and, with several ranks, the sum over ranks",
         .verdict = "across layers: measure anew"},
        {.name = "6+7",
         .kind = kFuse,
         .patterns = decode_gdn({6, 7}),
         .vanishes = "one launch; q, k, v, a and b are neither written nor read",
         .keeps = "conv output rounded to bf16; beta rounded to bf16",
         .constraint = "one convolution history feeds several recurrent blocks: all must read it "
                       "before it is overwritten",
         .verdict = "room, but the state update must be divided anew",
         .grid_sync = true},
        {.name = "6-preprocess",
         .kind = kShift,
         .patterns = decode_gdn({6, 7}),
         .stages = {"norms_and_gates", "state_update"},
         .vanishes = "no launch; each value tile's own q and k norms and gates, done once instead",
         .keeps = "conv output rounded to bf16; q and k norms in f32, not stored as bf16; beta "
                  "rounded to bf16 and alpha computed in the same order; padding slots",
         .constraint = "two kernels stay and no block waits for another; q, k and the gates travel "
                       "in f32",
         .verdict = "milder than 6+7",
         .handed_bytes = prepared_qk_and_gates},
        {.name = "7+8",
         .kind = kFuse,
         .patterns = decode_gdn({7, 8}),
         .vanishes = "one launch; o is neither written nor read",
         .keeps = "o rounded to bf16 before the norm",
         .constraint = "a block must own a whole head's dv values, where four share them today",
         .verdict = "layout study, long term"},
        {.name = "6+7+8+9",
         .kind = kFuse,
         .patterns = decode_gdn({6, 7, 8, 9}),
         .vanishes = "three launches; q, k, v, z, a, b, o and y are neither written nor read",
         .keeps = "conv output, o and y rounded to bf16; the token scale over all local heads",
         .constraint = "four layouts at once: conv channels, state tiles, head norm, token scale",
         .verdict = "not in a first round",
         .grid_sync = true},
        {.name = "expand-routed-gate-up",
         .kind = kExpand,
         .patterns = decode_both({21}, -1),
         .stages = {"gather", "gemm", "silu_mul", "quantise"},
         .vanishes = "nothing: the chain of a generic grouped GEMM, to measure each saving against",
         .keeps = "gate and up rounded to bf16, F rounded to bf16 before its codes",
         .constraint = "live rows only, by endpoints"},
        {.name = "expand-routed-down",
         .kind = kExpand,
         .patterns = decode_both({22}, -1),
         .stages = {"gemm"},
         .vanishes = "nothing",
         .keeps = "Z rounded to bf16",
         .constraint = "live rows only, by endpoints"},
    };
}

} // namespace

const std::vector<Rewrite>& all_rewrites() {
    static const std::vector<Rewrite> rewrites = make_rewrites();
    return rewrites;
}

} // namespace lr::graph
