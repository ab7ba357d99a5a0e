// SPDX-License-Identifier: Apache-2.0
//
// cpu/sampling/penalties.h: the first steps of ops/sampling/sample.h, up to the penalties.
#pragma once

#include "ops/sampling/sample.h"

namespace lr::cpu {

// z of the row, [vocab_limit]: its logits themselves where it has neither bias nor penalty, else
// thread scratch 0. The row's logits are finite.
const float* penalised_logits(const ops::SampleArgs& args, std::int64_t row);

} // namespace lr::cpu
