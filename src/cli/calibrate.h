// SPDX-License-Identifier: Apache-2.0
//
// cli/calibrate.h: how large the activations of a plain model become over a text.
#pragma once

#include "engine/observer.h"
#include "model/open.h"
#include "model/quantize_plan.h"

#include <cstdint>
#include <string>
#include <vector>

namespace lr::cli {

// The largest |x| that the products of each weight read, rows of padding left out. An expert stack
// has one for all its experts. For an engine of one rank.
class InputRangeObserver final : public engine::NodeObserver {
  public:
    explicit InputRangeObserver(const model::Model& model) : model_(model) {}
    // kInternal for an input that is not finite.
    Status after(const engine::Launched& launched) override;
    const model::InputRanges& ranges() const { return ranges_; }

  private:
    const model::Model& model_;
    model::InputRanges ranges_;
    std::vector<float> row_;
};

struct CalibrateOptions {
    std::string text; // a file, UTF-8; control tokens in it are read as such
    std::int64_t tokens = 2048;
    int threads = 0;
};

// Runs the first tokens of the text through the model in bf16, in windows of 512 that each start
// from an empty state. kInvalidArgument for a text without tokens.
Result<model::InputRanges> calibrate(const model::OpenModel& opened,
                                     const CalibrateOptions& options);

} // namespace lr::cli
