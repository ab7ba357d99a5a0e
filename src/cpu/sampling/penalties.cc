// SPDX-License-Identifier: Apache-2.0
#include "cpu/sampling/penalties.h"

#include "cpu/rows.h"
#include "ops/sampling/count_tokens.h"

#include <algorithm>
#include <limits>

namespace lr::cpu {
namespace {

struct Penalties {
    float repetition, frequency, presence;

    bool none() const { return repetition == 1.0f && frequency == 0.0f && presence == 0.0f; }
    float apply(float z, std::uint16_t entry) const {
        constexpr float kLargest = std::numeric_limits<float>::max();
        const int times = entry & ops::kMaxTokenCount;
        if (repetition != 1.0f)
            z = z > 0 ? z / repetition : z * repetition;
        z -= frequency * static_cast<float>(times);
        if (times > 0)
            z -= presence;
        return std::clamp(z, -kLargest, kLargest);
    }
};

void add_bias(const ops::SampleArgs& args, const std::int32_t* range, float* z) {
    for (std::int32_t j = range[0]; j < range[1]; ++j) {
        const std::int32_t id = int_at(args.bias_id, j);
        if (id >= 0 && id < args.vocab_limit)
            z[id] += float_at(args.bias_value, j);
    }
}

// Few ids have been seen: the others are passed over several at a time.
void apply_penalties(const Penalties& penalties, const std::uint16_t* counts, std::int64_t vocab,
                     float* z) {
    constexpr std::int64_t kRun = 16;
    for (std::int64_t first = 0; first < vocab; first += kRun) {
        const std::int64_t end = std::min(first + kRun, vocab);
        std::uint16_t any = 0;
        for (std::int64_t i = first; i < end; ++i)
            any |= counts[i];
        for (std::int64_t i = first; any != 0 && i < end; ++i)
            if (counts[i] != 0)
                z[i] = penalties.apply(z[i], counts[i]);
    }
}

} // namespace

const float* penalised_logits(const ops::SampleArgs& args, std::int64_t row) {
    const float* logits = args.logits.row_as<float>(row);
    const std::int32_t* range = args.bias_range.row_as<std::int32_t>(row);
    const std::int32_t slot = int_at(args.count_slot, row);
    const Penalties penalties{float_at(args.repetition, row), float_at(args.frequency, row),
                              float_at(args.presence, row)};
    const bool penalised = slot >= 0 && !penalties.none();
    if (range[0] >= range[1] && !penalised)
        return logits;
    float* z = thread_scratch(0, args.vocab_limit);
    std::copy_n(logits, args.vocab_limit, z);
    add_bias(args, range, z);
    if (penalised)
        apply_penalties(penalties, args.counts.row_as<std::uint16_t>(slot), args.vocab_limit, z);
    return z;
}

} // namespace lr::cpu
