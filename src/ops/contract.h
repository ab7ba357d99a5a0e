// SPDX-License-Identifier: Apache-2.0
//
// ops/contract.h: the contract of an op as its header states it, for tools that show it. The build
// takes the text from the header's opening comment, so there is no second description.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lr::ops {

// A header's opening comment, slashes and all.
struct ContractText {
    std::string_view op; // its stem, as op_stem() names it
    std::string_view comment;
};
std::span<const ContractText> contract_texts();

struct Contract {
    struct Part {
        std::string label; // "Math", "Shapes", ... the ten of every op
        std::string text;  // lines, their common indent taken off
    };
    std::string purpose; // the paragraph before the labels
    std::vector<Part> parts;
    std::string remarks; // what follows them, "" for nothing
};

// Of an op that exists (checked).
Contract contract(std::string_view op);

} // namespace lr::ops
