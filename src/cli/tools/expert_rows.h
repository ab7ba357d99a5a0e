// SPDX-License-Identifier: Apache-2.0
//
// cli/tools/expert_rows.h: where the rows come from that `liverow experts` describes: counts that
// were given, a distribution, or a run of a model.
#pragma once

#include "cli/text_input.h"
#include "experts/load.h"
#include "model/config.h"
#include "numerics/weight_format.h"

#include <optional>
#include <string>
#include <vector>

namespace lr::cli {

struct RowFlags {
    std::string counts, counts_file, distribution, model; // one of them
    TextInput text;                                       // what the model reads
    std::int64_t layer = 0;                               // of the model
    std::int64_t tokens = 0;          // n; 0: of counts the fewest, else 64 or the whole text
    std::int64_t experts = 0;         // E, of distributions; 0: the preset's
    std::int64_t top_k = 0;           // K; 0: the preset's, unknown for counts
    std::int64_t capacity = 0;        // R; 0: the tokens, of counts the rows rounded up to `block`
    std::int64_t ranks = 1, rank = 0; // ranks that divide the experts, and the one described
    std::uint64_t seed = 1;
    int threads = 0;
};

struct ExpertRows {
    experts::Routing routing; // of the rank's experts
    experts::Load load;       // [L]
    std::string source;
    bool counted = false;   // from counts: which token a row is of was made up
    std::int64_t top_k = 0; // 0: unknown
    std::int64_t capacity = 0;
    // Of a model that ran.
    std::optional<model::Config> config;
    std::optional<numerics::WeightFormat> weights; // of the layer's experts
};

// kInvalidArgument for flags that do not go together or values that cannot be, kInvalidFile and
// kNotFound for files. `block` is BM.
Result<ExpertRows> read_expert_rows(const RowFlags& flags, const model::Config& preset,
                                    std::int64_t block);

// "70,12" or a JSON array; `where` names it in errors.
Result<std::vector<std::int64_t>> parse_counts(std::string_view text, std::string_view where);

// Counts against the capacity, dealt to at least `tokens` tokens, more where they need more.
// kInvalidArgument where more than `capacity` are needed.
Result<experts::Routing> routing_of_counts(const std::vector<std::int64_t>& counts,
                                           std::int64_t capacity, std::int64_t tokens,
                                           std::int64_t per_token, std::string_view where);

} // namespace lr::cli
