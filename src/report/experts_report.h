// SPDX-License-Identifier: Apache-2.0
//
// report/experts_report.h: the routed-expert work of one rank, as sections that a terminal, a
// browser and a program read. Every number is asked of src/experts when the sections are made; this
// folder counts nothing.
#pragma once

#include "core/json.h"
#include "experts/micro_batch.h"
#include "report/table.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lr::report {

// One product of each GEMM to follow: output row q, column n, feature k of the sum.
struct ElementRequest {
    std::int64_t row = 0, column = 0, depth = 0;
};

struct Sweep {
    std::string key; // "bm", "bn", "ctas" or "align"
    std::vector<std::int64_t> values;
};

// What is to be described. `problem` has been checked (experts::check).
struct ExpertsInput {
    experts::Problem problem;
    std::string source;           // where the rows come from: "--counts", "layer 3 of ..."
    experts::Load load;           // of a token; for expectations
    std::int64_t top_k = 0;       // K of the model; 0: unknown
    std::int64_t rank_tokens = 0; // b, tokens of any source rank; 0: unknown
    experts::Machine machine;
    double launch_seconds = 2e-6;
    std::optional<experts::Routing> next;                                // another replay
    std::optional<std::pair<experts::Routing, experts::Routing>> halves; // of the batch
    std::optional<experts::SplitTimes> times;                            // milliseconds a token
    std::optional<Sweep> sweep;
    std::vector<ElementRequest> elements;
    std::int64_t top = 32; // rows of a table of experts, blocks or CTAs; 0: all
};

// A part of the report. `json` holds all of it, tables may leave out rows and then say so.
struct Section {
    std::string id, title; // [a-z-]+; plain text
    std::vector<Table> tables;
    std::vector<std::string> notes; // plain text, a sentence each
    Json json;
};

// An error is the input's: an element that is not there, halves that are not the whole, a value of
// the sweep that cannot be.
Result<std::vector<Section>> experts_sections(const ExpertsInput& input);

std::string experts_text(const ExpertsInput& input, const std::vector<Section>& sections);
std::string experts_json(const ExpertsInput& input, const std::vector<Section>& sections);
std::string experts_html(const ExpertsInput& input, const std::vector<Section>& sections);

// One line: "82 live rows of 2 experts, expert-major, 256 rows allocated, ...".
std::string experts_headline(const ExpertsInput& input);

} // namespace lr::report
