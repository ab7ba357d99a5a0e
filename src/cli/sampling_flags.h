// SPDX-License-Identifier: Apache-2.0
//
// cli/sampling_flags.h: the flags of every command that draws tokens.
//
// Without --temp and --sample a command is greedy: it repeats itself and asks for no choice.
// --temp alone draws from the whole distribution; --sample takes what the model's
// generation_config.json recommends (temperature 1 where it names none). Every flag that is given
// goes before what the file says.
#pragma once

#include "engine/piece.h"
#include "model/config.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace lr::cli {

struct SamplingFlags {
    bool sample = false;
    std::optional<double> temperature, top_p, min_p;
    std::optional<double> presence, frequency, repetition;
    std::optional<std::int64_t> top_k;
    std::vector<std::string> bias; // "ID=VALUE"
    std::uint64_t seed = 0;
    std::int64_t logprobs = -1; // -1: none

    // What the flags and the model's file say, in range for ids below `drawable`.
    Result<engine::Sampling> sampling(const model::GenerationConfig& file,
                                      std::int64_t drawable) const;
};

// --temp or --temperature, --sample, --top-k, --top-p, --min-p, --presence-penalty,
// --frequency-penalty,
// --repetition-penalty, --logit-bias, --seed. `flags` must live until the command line is parsed;
// `default_temperature` is what --temp's help says of its absence.
void add_sampling_flags(CLI::App& command, SamplingFlags& flags,
                        std::string_view default_temperature);
// --logprobs.
void add_logprobs_flag(CLI::App& command, SamplingFlags& flags);

// "greedy", "temperature 0.8, top-k 40, top-p 0.95, seed 7": what is not off.
std::string describe(const engine::Sampling& sampling);

} // namespace lr::cli
