// SPDX-License-Identifier: Apache-2.0
//
// A config.json from anyone: refused, or a model whose table and graph can be built and whose
// config survives being written and read again.
#include "checkpoint/quant_config.h"
#include "graph/step.h"
#include "model/config.h"
#include "model/tensor_table.h"
#include "tests/fuzz/fuzz.h"

namespace {

bool small(const lr::model::Config& config) {
    return config.layer_count() <= 8 && config.experts <= 64;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto json = lr::parse_json(lr::fuzz::as_text(data, size), "config.json");
    if (!json)
        return 0;
    // Once as config.json, once as the file that ModelOpt puts beside it.
    const lr::JsonCursor root("config.json", *json);
    for (const auto& declared : {lr::checkpoint::read_quantization_config(root),
                                 lr::checkpoint::read_quantization_config(root, root)})
        if (declared && *declared)
            for (const char* module :
                 {"lm_head", "layers.0.mlp.experts.1.up_proj", "layers.0.mlp.experts.down_proj"})
                FUZZ_CHECK((*declared)->of(module).format.text ==
                           (*declared)->of(module).format.text);
    const auto config = lr::model::parse_config(*json, "config.json");
    if (!config)
        return 0;
    const auto again = lr::model::parse_config(lr::model::config_to_json(*config), "written");
    FUZZ_CHECK(again.has_value());
    FUZZ_CHECK(lr::to_json_string(lr::model::config_to_json(*again)) ==
               lr::to_json_string(lr::model::config_to_json(*config)));
    if (!small(*config))
        return 0;
    const auto model = lr::model::Model::declare(*config, {});
    FUZZ_CHECK(model.parameter_count() > 0);
    (void)lr::graph::build_step(model, {}, {.rows = 2, .sequences = 2, .logit_rows = 2});
    (void)lr::graph::build_step(model, {},
                                {.phase = lr::graph::Phase::kPrefill, .rows = 64, .context = 128});
    return 0;
}
