// SPDX-License-Identifier: Apache-2.0
#include "cli/sampling_flags.h"

#include "cli/usage.h"
#include "ops/sampling/token_logprobs.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>

namespace lr::cli {
namespace {

template <typename T> bool read_number(std::string_view text, T& value) {
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    return problem == std::errc() && end == text.data() + text.size();
}

Result<engine::LogitBias> parse_bias(const std::string& item) {
    const std::size_t equals = item.find('=');
    engine::LogitBias bias;
    if (equals == std::string::npos ||
        !read_number(std::string_view(item).substr(0, equals), bias.id) ||
        !read_number(std::string_view(item).substr(equals + 1), bias.bias))
        return fail(Code::kInvalidArgument,
                    "--logit-bias: expected ID=VALUE pairs such as 17=-100,4=2.5, got \"{}\"",
                    item);
    return bias;
}

// The flag, else the file where it counts, else `off`.
float choose(const std::optional<double>& flag, const std::optional<double>& file, double off) {
    return static_cast<float>(flag ? *flag : file.value_or(off));
}

} // namespace

Result<engine::Sampling> SamplingFlags::sampling(const model::GenerationConfig& file,
                                                 std::int64_t drawable) const {
    if (!sample && !temperature && (top_k || top_p || min_p))
        return fail(Code::kInvalidArgument,
                    "--top-k, --top-p and --min-p choose among draws: expected --temp or --sample "
                    "with them, got neither");
    const model::GenerationConfig from = sample ? file : model::GenerationConfig{};
    engine::Sampling result;
    result.temperature = choose(temperature, from.temperature, sample ? 1 : 0);
    const std::int64_t k = top_k ? *top_k : from.top_k.value_or(0);
    result.top_k = static_cast<std::int32_t>(std::clamp<std::int64_t>(k, INT32_MIN, INT32_MAX));
    result.top_p = choose(top_p, from.top_p, 1);
    result.min_p = choose(min_p, from.min_p, 0);
    result.repetition = choose(repetition, from.repetition_penalty, 1);
    result.frequency = choose(frequency, {}, 0);
    result.presence = choose(presence, {}, 0);
    result.seed = seed;
    for (const std::string& item : bias) {
        LR_TRY_ASSIGN(const engine::LogitBias entry, parse_bias(item));
        result.bias.push_back(entry);
    }
    LR_TRY(engine::check(result, drawable));
    return result;
}

void add_sampling_flags(CLI::App& command, SamplingFlags& flags,
                        std::string_view default_temperature) {
    const FlagGroup group(command, kSamplingFlags);
    command.add_option(
        "--temp,--temperature", flags.temperature,
        fmt::format("Temperature, 0..100; 0 takes the likeliest token [{}]", default_temperature));
    command.add_flag("--sample", flags.sample,
                     "Draw as the model's generation_config.json recommends");
    command.add_option("--top-k", flags.top_k, "Draw among the K likeliest only; 0: all");
    command.add_option("--top-p", flags.top_p,
                       "Draw among the likeliest that make up P of the whole; 1: all");
    command.add_option("--min-p", flags.min_p,
                       "Draw among tokens at least P times as likely as the likeliest; 0: all");
    command.add_option("--presence-penalty", flags.presence,
                       "Taken from the logit of every token generated before, -2..2");
    command.add_option("--frequency-penalty", flags.frequency,
                       "Taken once for each time it was generated, -2..2");
    command.add_option("--repetition-penalty", flags.repetition,
                       "Divides positive logits of tokens seen, in the prompt too, and multiplies "
                       "negative ones; 1: off");
    command.add_option("--logit-bias", flags.bias, "Added to the logits of tokens, -100..100 each")
        ->type_name("ID=VALUE,...")
        ->delimiter(',')
        ->allow_extra_args(false);
    command.add_option("--seed", flags.seed, "Seed of the draws; the same seed repeats a run")
        ->capture_default_str();
}

void add_logprobs_flag(CLI::App& command, SamplingFlags& flags) {
    command
        .add_option("--logprobs", flags.logprobs,
                    "Print the log-probability of each token, and of the N likeliest, 0..20")
        ->check(CLI::Range(std::int64_t{0}, std::int64_t{ops::kMaxTopLogprobs}));
}

std::string describe(const engine::Sampling& sampling) {
    std::string text = sampling.temperature > 0
                           ? fmt::format("temperature {}", sampling.temperature)
                           : std::string("greedy");
    const auto add = [&](bool on, const char* name, auto value) {
        if (on)
            text += fmt::format(", {} {}", name, value);
    };
    const bool draws = sampling.temperature > 0;
    add(draws && sampling.top_k > 0, "top-k", sampling.top_k);
    add(draws && sampling.top_p < 1, "top-p", sampling.top_p);
    add(draws && sampling.min_p > 0, "min-p", sampling.min_p);
    add(sampling.repetition != 1, "repetition penalty", sampling.repetition);
    add(sampling.frequency != 0, "frequency penalty", sampling.frequency);
    add(sampling.presence != 0, "presence penalty", sampling.presence);
    add(!sampling.bias.empty(), "logit biases", sampling.bias.size());
    add(draws, "seed", sampling.seed);
    return text;
}

} // namespace lr::cli
