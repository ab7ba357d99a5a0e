// SPDX-License-Identifier: Apache-2.0
#include "model/presets.h"
#include "model/tensor_table.h"
#include "tests/model/configs.h"

#include <gtest/gtest.h>

#include <set>

namespace lr::model {
namespace {

Model table(std::string_view name, std::string_view format = "bf16") {
    return Model::declare(*preset(name), *format_policy(format));
}

TEST(TensorTable, CountsTheTensorsOfTheRelease) {
    const Model model = table("35B-A3B");
    EXPECT_EQ(model.text_tensor_count(true), 693);
    EXPECT_EQ(model.mtp_tensor_count(false), 785);
    EXPECT_EQ(model.text_tensor_count(false), 693 + 40 * (3 * 256 - 2));
    EXPECT_EQ(model.mtp_tensor_count(true), 785 - 3 * 256 + 2);
    // Tied and dense: 1 + 1 + 24 * 2 norms, 18 * 9, 6 * 6, 24 * 3 projections.
    EXPECT_EQ(table("0.8B").text_tensor_count(true), 320);
    EXPECT_EQ(table("9B").index("lm_head"), table("9B").index("norm") + 1);
    EXPECT_EQ(table("0.8B").index("lm_head"), -1);
}

TEST(TensorTable, NamesAndShapesAreThoseOfTheFiles) {
    const Model model = table("397B-A17B");
    const Entry& qkvz = model.entry("layers.0.linear_attn.in_proj_qkvz");
    ASSERT_EQ(qkvz.sources.size(), 2u);
    EXPECT_EQ(qkvz.sources[0].name, "layers.0.linear_attn.in_proj_qkv.weight");
    EXPECT_EQ(qkvz.sources[0].shape, Shape({12288, 4096}));
    EXPECT_EQ(qkvz.sources[1].shape, Shape({8192, 4096}));
    const Entry& qkv = model.entry("layers.3.self_attn.qkv_proj");
    EXPECT_EQ(qkv.sources[0].shape, Shape({16384, 4096}));
    EXPECT_EQ(qkv.sources[1].shape, Shape({512, 4096}));
    EXPECT_EQ(qkv.shape, Shape({17408, 4096}));
    EXPECT_EQ(model.entry("layers.0.linear_attn.conv1d").sources[0].shape, Shape({12288, 1, 4}));
    const Entry& experts = model.entry("layers.59.mlp.experts.gate_up_proj");
    EXPECT_EQ(experts.sources[0].name, "layers.59.mlp.experts.gate_up_proj");
    EXPECT_EQ(experts.shape, Shape({512, 2048, 4096}));
    EXPECT_EQ(experts.per_expert[1].name, "layers.59.mlp.experts.{}.up_proj.weight");
    EXPECT_EQ(model.entry("mtp.fc").shape, Shape({4096, 8192}));
    EXPECT_TRUE(model.entry("mtp.layers.0.mlp.gate").mtp);
    EXPECT_EQ(model.index("layers.3.linear_attn.conv1d"), -1);
}

TEST(TensorTable, SourcesAndBlocksTileEveryEntry) {
    for (std::string_view name : preset_names()) {
        const Model model = table(name);
        std::set<std::string> seen;
        for (const Entry& entry : model.entries()) {
            std::int64_t elements = 0, block_rows = 0, expert_elements = 0;
            for (const SourceTensor& source : entry.sources) {
                elements += source.shape.count();
                EXPECT_TRUE(seen.insert(source.name).second) << source.name;
            }
            for (const RowBlock& block : entry.blocks)
                block_rows += block.rows;
            for (const SourceTensor& source : entry.per_expert)
                expert_elements += source.shape.count();
            EXPECT_EQ(elements, entry.shape.count()) << entry.name;
            EXPECT_EQ(block_rows, entry.rows()) << entry.name;
            if (entry.kind == TensorKind::kRouted) {
                EXPECT_EQ(expert_elements * entry.shape[0], entry.shape.count()) << entry.name;
            }
        }
    }
}

TEST(TensorTable, LayersMatchTheBytesOfTheSpecification) {
    // Totals of a GDN layer's FFN and projections, all experts, 397B: 12,884,901,888 bytes of
    // bf16 experts, and half plus scales in fp8 blocks.
    const auto experts = [](std::string_view format) {
        const Model model = table("397B-A17B", format);
        return model.entry("layers.0.mlp.experts.gate_up_proj").bytes() +
               model.entry("layers.0.mlp.experts.down_proj").bytes();
    };
    EXPECT_EQ(experts("bf16"), 12'884'901'888);
    EXPECT_EQ(experts("fp8-block"), 6'443'237'376);
    EXPECT_EQ(experts("nvfp4"), 3'623'878'656);
    EXPECT_EQ(table("397B-A17B").entry("lm_head").bytes(), 2'034'237'440);
}

TEST(TensorTable, PoliciesQuantiseTheirModulesOnly) {
    const Model fp8 = table("35B-A3B", "fp8-block");
    const Model mixed = table("35B-A3B", "nvfp4-mixed");
    const auto format = [](const Model& model, const char* name) {
        return model.entry(name).format;
    };
    using enum WeightFormat;
    EXPECT_EQ(format(fp8, "layers.0.linear_attn.in_proj_qkvz"), kFp8Block);
    EXPECT_EQ(format(fp8, "layers.0.linear_attn.in_proj_ba"), kPlain);
    EXPECT_EQ(format(fp8, "layers.0.mlp.gate"), kPlain);
    EXPECT_EQ(format(fp8, "lm_head"), kPlain);
    EXPECT_EQ(format(mixed, "layers.0.mlp.experts.down_proj"), kNvfp4);
    EXPECT_EQ(format(mixed, "layers.0.mlp.shared_expert.down_proj"), kFp8Channel);
    EXPECT_TRUE(fp8.entry("layers.0.mlp.experts.down_proj").stored_per_expert);
    EXPECT_FALSE(table("35B-A3B").entry("layers.0.mlp.experts.down_proj").stored_per_expert);
    EXPECT_TRUE(table("35B-A3B").entry("mtp.layers.0.mlp.experts.down_proj").stored_per_expert);
    const Result<FormatPolicy> none = format_policy("int4");
    ASSERT_FALSE(none);
    EXPECT_NE(none.error().message().find("expected one of bf16, fp8-block"), std::string::npos);
}

// --- shards ---

std::int64_t elements_of_all_ranks(const Entry& entry, std::int32_t tp, std::int32_t ep) {
    std::int64_t sum = 0;
    for (std::int32_t e = 0; e < ep; ++e)
        for (std::int32_t t = 0; t < tp; ++t)
            sum += local_shape(entry, {.tp = tp, .tp_rank = t, .ep = ep, .ep_rank = e}).count();
    return sum;
}

bool replicated(const Entry& entry) {
    if (entry.split_columns)
        return false;
    for (const RowBlock& block : entry.blocks)
        if (block.rule != RowRule::kReplicated)
            return false;
    return true;
}

TEST(Shard, RanksTogetherHoldTheWhole) {
    for (std::string_view name : {"0.8B", "27B", "35B-A3B", "397B-A17B"}) {
        const Model model = table(name);
        for (const std::int32_t tp : {2, 4, 8}) {
            ASSERT_TRUE(model.check_shard({.tp = tp}).ok()) << name << " tp " << tp;
            for (const Entry& entry : model.entries()) {
                std::int64_t expected = entry.shape.count() * (replicated(entry) ? tp : 1);
                // Keys and values beyond their head count are held by several ranks.
                for (const RowBlock& block : entry.blocks)
                    if (block.rule == RowRule::kKvHeads && block.heads < tp)
                        expected += block.rows * (tp / block.heads - 1) * entry.columns();
                EXPECT_EQ(elements_of_all_ranks(entry, tp, 1), expected)
                    << name << " " << entry.name << " tp " << tp;
            }
        }
    }
}

TEST(Shard, EveryRowIsOwnedOnceAndInOrder) {
    const Model model = table("27B"); // 24 query, 4 key/value, 16 and 48 GDN heads
    const Entry& entry = model.entry("layers.0.linear_attn.in_proj_qkvz");
    std::set<std::pair<std::int32_t, std::int64_t>> owned;
    for (std::int32_t rank = 0; rank < 8; ++rank)
        for (const RowRange& range : local_rows(entry, {.tp = 8, .tp_rank = rank}))
            for (std::int64_t row = range.first; row < range.first + range.rows; ++row)
                EXPECT_TRUE(owned.insert({range.source, row}).second);
    EXPECT_EQ(static_cast<std::int64_t>(owned.size()), entry.rows());
    // Rank 3 of 8: key heads 6 and 7, value heads 18..23, q then k then v then z.
    const std::vector<RowRange> ranges = local_rows(entry, {.tp = 8, .tp_rank = 3});
    ASSERT_EQ(ranges.size(), 4u);
    EXPECT_EQ(ranges[0].first, 6 * 128);
    EXPECT_EQ(ranges[1].first, 2048 + 6 * 128);
    EXPECT_EQ(ranges[2].first, 4096 + 18 * 128);
    EXPECT_EQ(ranges[3].source, 1);
    EXPECT_EQ(ranges[3].first, 18 * 128);
    EXPECT_EQ(ranges[3].rows, 6 * 128);
}

TEST(Shard, AWholeModelIsOneRangeOfEachSource) {
    const Model model = table("27B");
    const Entry& entry = model.entry("layers.3.self_attn.qkv_proj");
    const std::vector<RowRange> ranges = local_rows(entry, {});
    ASSERT_EQ(ranges.size(), 3u);
    for (const RowRange& range : ranges)
        EXPECT_EQ(range.rows, entry.sources[static_cast<std::size_t>(range.source)].shape[0]);
    EXPECT_EQ(local_shape(entry, {}), entry.shape);
}

TEST(Shard, KeyValueHeadsAreRepeatedWhenRanksOutnumberThem) {
    const Model model = table("35B-A3B"); // 16 query heads, 2 key/value heads of 256
    const Entry& entry = model.entry("layers.3.self_attn.qkv_proj");
    for (std::int32_t rank = 0; rank < 8; ++rank) {
        const std::vector<RowRange> ranges = local_rows(entry, {.tp = 8, .tp_rank = rank});
        ASSERT_EQ(ranges.size(), 3u);
        EXPECT_EQ(ranges[0].first, rank * 1024); // q and gate of two heads
        EXPECT_EQ(ranges[0].rows, 1024);
        EXPECT_EQ(ranges[1].first, rank / 4 * 256);
        EXPECT_EQ(ranges[1].rows, 256);
        EXPECT_EQ(ranges[2].first, rank / 4 * 256);
    }
    EXPECT_EQ(local_shape(entry, {.tp = 8, .tp_rank = 5}), Shape({1024 + 512, 2048}));
}

TEST(Shard, ExpertsAreDividedByNumberAndTheSharedOneByWidth) {
    const Model model = table("35B-A3B");
    const Shard shard = {.tp = 2, .tp_rank = 1, .ep = 4, .ep_rank = 3};
    ASSERT_TRUE(model.check_shard(shard).ok());
    EXPECT_EQ(local_shape(model.entry("layers.0.mlp.experts.gate_up_proj"), shard),
              Shape({64, 512, 2048}));
    EXPECT_EQ(local_shape(model.entry("layers.0.mlp.experts.down_proj"), shard),
              Shape({64, 2048, 256}));
    const ColumnRange shared =
        local_columns(model.entry("layers.0.mlp.shared_expert.down_proj"), shard);
    EXPECT_EQ(shared.count, 512 / 8);
    EXPECT_EQ(shared.first, 7 * 64);
    EXPECT_EQ(elements_of_all_ranks(model.entry("layers.0.mlp.experts.gate_up_proj"), 2, 4),
              model.entry("layers.0.mlp.experts.gate_up_proj").shape.count());
}

TEST(Shard, RefusesWhatCannotBeDivided) {
    struct Case {
        const char *model, *format;
        Shard shard;
        const char* message;
    };
    const Case cases[] = {
        {"35B-A3B", "bf16", {.tp = 3}, "tp=3: vocabulary=248320 cannot be divided evenly"},
        {"27B", "bf16", {.tp = 16}, "tp=16: query heads=24 cannot be divided evenly"},
        {"35B-A3B", "bf16", {.tp = 32}, "tp=32: query heads=16"},
        {"397B-A17B", "bf16", {.tp = 32}, "tp=32: GDN key heads=16"},
        {"35B-A3B", "bf16", {.ep = 3}, "ep=3: experts=256"},
        {"0.8B", "bf16", {.ep = 2}, "ep=2: expected 1, a dense model has no experts"},
        {"35B-A3B", "bf16", {.tp = 0}, "shard: expected tp, ep >= 1"},
        {"35B-A3B", "bf16", {.tp = 2, .tp_rank = 2}, "got tp=2 rank 2"},
        {"35B-A3B", "fp8-block", {.tp = 8}, "divide only at multiples of 128"},
        {"35B-A3B", "bf16", {.tp = 16, .ep = 64}, "tp*ep=1024: shared expert width=512"},
    };
    for (const Case& c : cases) {
        const Status status = table(c.model, c.format).check_shard(c.shard);
        EXPECT_FALSE(status.ok()) << c.message;
        EXPECT_EQ(status.code(), Code::kInvalidArgument);
        EXPECT_NE(status.message().find(c.message), std::string::npos) << status.message();
    }
    EXPECT_TRUE(table("35B-A3B", "fp8-block").check_shard({.tp = 4}).ok());
    EXPECT_TRUE(table("397B-A17B", "fp8-block").check_shard({.tp = 8}).ok());
}

TEST(Shard, RefusesRanksThatCutAKeyValueHead) {
    Config config = *preset("27B");
    config.kv_heads = 3;
    const Model model = Model::declare(config, {});
    const Status status = model.check_shard({.tp = 2});
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(status.message(), "tp=2: expected a divisor or a multiple of the 3 key/value heads");
}

} // namespace
} // namespace lr::model
