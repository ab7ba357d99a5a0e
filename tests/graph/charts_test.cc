// SPDX-License-Identifier: Apache-2.0
//
// The node and edge sets of the traced kernel graph's four flowcharts, as literals. The 397B model,
// two ranks, NVFP4 routed experts and FP8 elsewhere: the traced configuration.
#include "graph/step.h"
#include "model/presets.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>

namespace lr::graph {
namespace {

struct Chart {
    Phase phase;
    std::int32_t layer;
    std::vector<const char*> names; // node i + 1
    // "from>to" with node numbers; N is the next layer's node 1.
    const char* edges;
};

const Chart kPrefillGdn = {
    Phase::kPrefill,
    4,
    {"input_add_rmsnorm",
     "in_proj_qkvz_input_fp8_quant",
     "in_proj_qkvz_fp8_gemm",
     "in_proj_ba_bf16_gemm",
     "initial_state_mask",
     "causal_conv1d_silu",
     "qkv_split_layout",
     "gdn_gating",
     "q_l2norm",
     "k_l2norm",
     "chunk_gate_cumsum",
     "chunk_A_zero_init",
     "chunk_kkt_solve",
     "chunk_recompute_w_u",
     "chunk_state_h",
     "chunk_output_zero_init",
     "chunk_output_o",
     "output_rmsnorm_silu_gate",
     "out_proj_input_fp8_quant",
     "out_proj_fp8_gemm",
     "attention_tp_allreduce",
     "post_attention_add_rmsnorm",
     "shared_gate_up_input_fp8_quant",
     "shared_gate_up_fp8_gemm",
     "shared_silu_mul",
     "shared_down_input_fp8_quant",
     "shared_down_fp8_gemm",
     "router_bf16_gemm",
     "routed_input_nvfp4_quant",
     "routing_histogram_scores",
     "routing_indices",
     "routed_gate_up_swiglu_fp4_gemm",
     "routed_down_fp4_gemm",
     "routed_finalize",
     "shared_gate_sigmoid_mul_add",
     "moe_tp_allreduce"},
    // 15>17 is the one edge that the chart leaves out: node 17 reads the chunk states and the new
    // values that node 15 makes.
    "1>2 2>3 1>4 5>6 3>6 6>7 4>8 8>11 7>9 7>10 12>13 10>13 8>13 11>13 13>14 10>14 7>14 8>14 11>14 "
    "14>15 10>15 11>15 15>17 16>17 9>17 10>17 11>17 17>18 3>18 18>19 19>20 20>21 21>22 1>22 22>23 "
    "23>24 24>25 25>26 26>27 22>28 28>30 30>31 22>29 29>32 31>32 32>33 31>33 33>34 30>34 31>34 "
    "27>35 34>35 22>35 35>36 36>N 22>N"};

const Chart kPrefillAttention = {
    Phase::kPrefill,
    3,
    {"input_add_rmsnorm",
     "qkv_proj_input_fp8_quant",
     "qkv_proj_fp8_gemm",
     "qk_rmsnorm_rope_gate_split",
     "store_kv_cache",
     "attention_workspace_init",
     "trtllm_full_attention",
     "output_sigmoid_gate",
     "o_proj_input_fp8_quant",
     "o_proj_fp8_gemm",
     "attention_tp_allreduce",
     "post_attention_add_rmsnorm",
     "shared_gate_up_input_fp8_quant",
     "shared_gate_up_fp8_gemm",
     "shared_silu_mul",
     "shared_down_input_fp8_quant",
     "shared_down_fp8_gemm",
     "router_bf16_gemm",
     "routed_input_nvfp4_quant",
     "routing_histogram_scores",
     "routing_indices",
     "routed_gate_up_swiglu_fp4_gemm",
     "routed_down_fp4_gemm",
     "routed_finalize",
     "shared_gate_sigmoid_mul_add",
     "moe_tp_allreduce"},
    "1>2 2>3 3>4 3>5 4>5 4>7 5>7 6>7 7>8 4>8 8>9 9>10 10>11 11>12 1>12 12>13 13>14 14>15 15>16 "
    "16>17 12>18 18>20 20>21 12>19 19>22 21>22 22>23 21>23 23>24 20>24 21>24 17>25 24>25 12>25 "
    "25>26 26>N 12>N"};

const Chart kDecodeGdn = {
    Phase::kDecode,
    4,
    {"input_allreduce_add_rmsnorm",
     "in_proj_ba_bf16_splitk_gemm",
     "in_proj_qkvz_input_fp8_quant",
     "in_proj_ba_splitk_reduce",
     "in_proj_qkvz_fp8_gemm",
     "qkvzba_unpack_causal_conv1d_silu",
     "gdn_packed_recurrent_qk_norm_gating_state_update",
     "output_rmsnorm_silu_gate",
     "out_proj_input_fp8_quant",
     "out_proj_fp8_gemm",
     "attention_allreduce_add_rmsnorm",
     "router_bf16_gemm",
     "shared_gate_up_input_fp8_quant",
     "shared_gate_up_fp8_gemm",
     "routed_input_nvfp4_quant",
     "routing_block_scores",
     "shared_silu_mul",
     "routing_cluster_indices",
     "shared_down_input_fp8_quant",
     "shared_down_fp8_gemm",
     "routed_gate_up_swiglu_fp4_gemm",
     "routed_down_fp4_gemm",
     "routed_finalize",
     "shared_gate_sigmoid_mul_add"},
    "1>2 2>4 1>3 3>5 5>6 4>6 6>7 7>8 6>8 8>9 9>10 10>11 1>11 11>12 12>16 16>18 11>13 13>14 14>17 "
    "17>19 19>20 11>15 15>21 18>21 21>22 18>22 22>23 18>23 23>24 20>24 11>24 24>N 11>N"};

const Chart kDecodeAttention = {
    Phase::kDecode,
    3,
    {"input_allreduce_add_rmsnorm",
     "qkv_proj_input_fp8_quant",
     "qkv_proj_fp8_gemm",
     "qk_rmsnorm_rope_gate_split",
     "store_kv_cache",
     "trtllm_full_attention_decode",
     "output_sigmoid_gate",
     "o_proj_input_fp8_quant",
     "o_proj_fp8_gemm",
     "attention_allreduce_add_rmsnorm",
     "router_bf16_gemm",
     "shared_gate_up_input_fp8_quant",
     "shared_gate_up_fp8_gemm",
     "routed_input_nvfp4_quant",
     "routing_block_scores",
     "shared_silu_mul",
     "routing_cluster_indices",
     "shared_down_input_fp8_quant",
     "shared_down_fp8_gemm",
     "routed_gate_up_swiglu_fp4_gemm",
     "routed_down_fp4_gemm",
     "routed_finalize",
     "shared_gate_sigmoid_mul_add"},
    "1>2 2>3 3>4 3>5 4>5 4>6 5>6 6>7 4>7 7>8 8>9 9>10 1>10 10>11 11>15 15>17 10>12 12>13 13>16 "
    "16>18 18>19 10>14 14>20 17>20 20>21 17>21 21>22 17>22 22>23 19>23 10>23 23>N 10>N"};

Step traced_step(Phase phase) {
    const auto config = model::preset("397B-A17B");
    const auto policy = model::format_policy("nvfp4-mixed");
    const model::Model model = model::Model::declare(*config, *policy);
    StepShape shape{.phase = phase,
                    .rows = phase == Phase::kDecode ? 54 : 8192,
                    .sequences = phase == Phase::kDecode ? 54 : 1,
                    .logit_rows = phase == Phase::kDecode ? 54 : 1,
                    .context = 8192,
                    .slots = 64,
                    .kv_pages = 54 * 128};
    auto step = build_step(model, {.tp = 2}, shape, {.w4a4 = true});
    EXPECT_TRUE(step) << (step ? "" : step.error().message());
    return step ? std::move(*step) : Step{};
}

std::set<std::string> literal_edges(const char* text) {
    std::istringstream words(text);
    std::set<std::string> edges;
    for (std::string word; words >> word;)
        edges.insert(word);
    return edges;
}

// The edges inside a layer and to the next layer's node 1.
std::set<std::string> layer_edges(const Step& step, std::int32_t layer) {
    std::set<std::string> edges;
    for (const Edge& edge : step.edges) {
        const Node& from = step.nodes[static_cast<std::size_t>(edge.from)];
        const Node& to = step.nodes[static_cast<std::size_t>(edge.to)];
        if (from.layer != layer)
            continue;
        const bool next = to.layer == layer + 1 && to.number == 1;
        EXPECT_TRUE(to.layer == layer || next) << from.label() << " -> " << to.label();
        edges.insert(std::to_string(from.number) + ">" +
                     (next ? std::string("N") : std::to_string(to.number)));
    }
    return edges;
}

void expect_chart(const Chart& chart) {
    const Step step = traced_step(chart.phase);
    std::map<std::int32_t, std::string> names;
    for (const Node& node : step.nodes)
        if (node.layer == chart.layer)
            names[node.number] = node.name;
    std::map<std::int32_t, std::string> expected;
    for (std::size_t i = 0; i < chart.names.size(); ++i)
        expected[static_cast<std::int32_t>(i) + 1] = chart.names[i];
    EXPECT_EQ(names, expected);
    EXPECT_EQ(layer_edges(step, chart.layer), literal_edges(chart.edges));
}

TEST(Charts, PrefillGdnHas36NodesAndTheChartsEdgesPlusOne) {
    EXPECT_EQ(kPrefillGdn.names.size(), 36u);
    expect_chart(kPrefillGdn);
}

TEST(Charts, PrefillAttentionHas26NodesAndTheChartsEdges) {
    EXPECT_EQ(kPrefillAttention.names.size(), 26u);
    expect_chart(kPrefillAttention);
}

TEST(Charts, DecodeGdnHas24NodesAndTheChartsEdges) {
    EXPECT_EQ(kDecodeGdn.names.size(), 24u);
    expect_chart(kDecodeGdn);
}

TEST(Charts, DecodeAttentionHas23NodesAndTheChartsEdges) {
    EXPECT_EQ(kDecodeAttention.names.size(), 23u);
    expect_chart(kDecodeAttention);
}

} // namespace
} // namespace lr::graph
