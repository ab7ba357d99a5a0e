// SPDX-License-Identifier: Apache-2.0
#include "ops/any_op.h"
#include "ops/contract.h"

#include <gtest/gtest.h>

#include <set>

namespace lr::ops {
namespace {

template <std::size_t... kIndex> std::set<std::string_view> stems(std::index_sequence<kIndex...>) {
    return {op_stem(AnyArgs(std::in_place_index<kIndex>))...};
}

TEST(Contract, IsThereForEveryOpWithItsTenLabelsInOrder) {
    std::set<std::string_view> found;
    for (const ContractText& text : contract_texts()) {
        found.insert(text.op);
        std::vector<std::string> labels;
        const Contract contract = ops::contract(text.op);
        for (const Contract::Part& part : contract.parts) {
            labels.push_back(part.label);
            EXPECT_FALSE(part.text.empty()) << text.op << " " << part.label;
        }
        EXPECT_EQ(labels,
                  (std::vector<std::string>{"Math", "Shapes", "Types", "Rounding", "Order",
                                            "Aliasing", "Bounds", "Graph", "Scratch", "Cost"}))
            << text.op;
        EXPECT_FALSE(contract.purpose.empty()) << text.op;
    }
    EXPECT_EQ(found, stems(std::make_index_sequence<std::variant_size_v<AnyArgs>>()));
}

TEST(Contract, IsWhatTheHeaderSays) {
    const Contract gate = contract("sigmoid_gate");
    EXPECT_EQ(gate.purpose, "the output gate of full attention.");
    EXPECT_EQ(gate.parts[0].text, "y = o * sigmoid(gate),  sigmoid(g) = 1 / (1 + exp(-g))");
    EXPECT_EQ(gate.parts[3].text, "all arithmetic f32; one rounding when y is stored");
    EXPECT_EQ(gate.remarks, "");
    EXPECT_EQ(contract("recurrent_update").parts.size(), 10u);
    const Contract sum = contract("all_reduce");
    EXPECT_EQ(sum.remarks, "The CPU function runs ranks == 1 only, as a copy; of several ranks "
                           "comm::Communicator runs it.");
    EXPECT_EQ(contract("gating").parts[0].text,
              "g = -exp(a_log) * softplus(a + dt_bias);  beta = sigmoid(b);  b | a = ba\n"
              "softplus(x) = x > 20 ? x : log1p(exp(x))");
}

} // namespace
} // namespace lr::ops
