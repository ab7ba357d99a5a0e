// SPDX-License-Identifier: Apache-2.0
#include "model/presets.h"
#include "model/tensor_table.h"

#include <gtest/gtest.h>

namespace lr::model {
namespace {

TEST(Presets, EveryPresetIsValidAndBuildsATable) {
    EXPECT_EQ(preset_names().size(), 12u);
    for (std::string_view name : preset_names()) {
        const Result<Config> config = preset(name);
        ASSERT_TRUE(config);
        EXPECT_TRUE(check_config(*config, "x").ok()) << name;
        for (std::string_view format : format_policy_names()) {
            const Model model = Model::declare(*config, *format_policy(format));
            EXPECT_EQ(model.tied(), *config->tied) << name;
            EXPECT_TRUE(model.check_shard({}).ok()) << name << " " << format;
        }
    }
}

// Text parameters in billions. The sizes are in the names, except where a name counts the shared
// embedding twice or rounds.
TEST(Presets, ParameterCountsAreThoseOfTheReleases) {
    const std::pair<const char*, double> expected[] = {
        {"0.8B", 0.7524}, {"2B", 1.8817},       {"4B", 4.2058},        {"9B", 8.9537},
        {"27B", 26.8960}, {"35B-A3B", 34.6606}, {"122B-A10B", 122.11}, {"397B-A17B", 396.3},
    };
    for (const auto& [name, billions] : expected) {
        const Model model = Model::declare(*preset(name), {});
        EXPECT_NEAR(static_cast<double>(model.parameter_count()) * 1e-9, billions,
                    billions > 100 ? 0.05 : 0.00005)
            << name;
    }
}

TEST(Presets, CarryTheDimensionsOfTheLargestModels) {
    const Config c = *preset("397B-A17B");
    EXPECT_EQ(c.conv_dim(), 12288);
    EXPECT_EQ(c.value_dim(), 8192);
    EXPECT_EQ(c.attention_width(), 8192);
    EXPECT_EQ(c.count(LayerKind::kGdn), 45);
    EXPECT_EQ(c.count(LayerKind::kAttention), 15);
    EXPECT_EQ(c.layers[3], LayerKind::kAttention);
    EXPECT_EQ(preset("27B")->conv_dim(), 10240);
    EXPECT_EQ(preset("35B-A3B")->conv_dim(), 8192);
}

TEST(Presets, AnUnknownNameListsTheKnownOnes) {
    const Result<Config> none = preset("36B");
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code(), Code::kNotFound);
    EXPECT_NE(none.error().message().find("35B-A3B"), std::string::npos);
    EXPECT_NE(none.error().message().find("got \"36B\""), std::string::npos);
}

} // namespace
} // namespace lr::model
