// SPDX-License-Identifier: Apache-2.0
//
// cli/run_options.h: what `liverow run` was asked for.
#pragma once

#include "cli/model_loader.h"
#include "cli/sampling_flags.h"
#include "cli/text_input.h"

#include <string>
#include <vector>

namespace lr::cli {

struct RunOptions {
    ModelFlags model;
    TextInput prompt;
    SamplingFlags sampling;
    std::string ids, logits;
    std::int64_t tokens = 128;
    std::int32_t choices = 1;
    std::vector<std::string> stop;
    bool special = false, ignore_eos = false, quiet = false, json = false;
    bool has_ids = false;

    // --chat
    bool chat = false, merge_system = false;
    std::string system, messages, tools, think = "auto";
};

// The prompt is a conversation: cli/run_chat.cc.
Status run_chat(const RunOptions& options);

// "load 0.02 s (...) | prefill 5 tokens, 180.0 tok/s | decode ...": the last line of a run.
void report_run(const LoadedModel& model, std::int64_t prompt_tokens, double prefill_seconds,
                std::int64_t decode_steps, double decode_seconds);

// The CPU runs everything today; says once why a GPU that may be there is not used.
void say_device(const engine::LoadReport& load);

} // namespace lr::cli
