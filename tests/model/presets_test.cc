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

// Counted from the published dimensions, tensor by tensor. The names of small models leave out the
// embedding; 122.11 B and 396.3 B are also what others count.
TEST(Presets, ParameterCountsAreThoseOfTheReleases) {
    const std::pair<const char*, std::int64_t> expected[] = {
        {"0.8B", 752'393'024},
        {"2B", 1'881'825'088},
        {"4B", 4'205'751'296},
        {"9B", 8'953'803'264},
        {"27B", 26'895'998'464},
        {"35B-A3B", 34'660'610'688},
        {"122B-A10B", 122'111'526'912},
        {"397B-A17B", 396'346'350'336},
        {"3.8-2.4T-A95B", 2'419'804'697'984},
    };
    for (const auto& [name, count] : expected)
        EXPECT_EQ(Model::declare(*preset(name), {}).parameter_count(), count) << name;
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
    EXPECT_EQ(none.error().code(), Code::kInvalidArgument);
    EXPECT_NE(none.error().message().find("35B-A3B"), std::string::npos);
    EXPECT_NE(none.error().message().find("got \"36B\""), std::string::npos);
}

} // namespace
} // namespace lr::model
