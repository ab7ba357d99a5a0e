// SPDX-License-Identifier: Apache-2.0
//
// Recorded and forced routing.
#include "engine/routing_record.h"
#include "tests/engine/compare.h"

namespace lr::engine {
namespace {

EngineOptions options(NodeObserver* observer) {
    EngineOptions o;
    o.threads = 2;
    o.context = 256;
    o.sequences = 2;
    o.observer = observer;
    return o;
}

std::vector<float> all_rows(Engine& engine, const std::vector<std::int32_t>& ids) {
    const SequenceId id = open(engine);
    auto logits = prefill(engine, id, ids, Logits::kAll);
    EXPECT_TRUE(engine.close_sequence(id).ok());
    return logits;
}

std::vector<std::string> models() {
    std::vector<std::string> names = {"tiny"};
    for (const RandomModel& model : random_models())
        names.push_back(model.name);
    return names;
}

class Routing : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Engine, Routing, testing::ValuesIn(models()),
                         [](const auto& info) { return test_name(info.param); });

TEST_P(Routing, PrefillAndDecodeDifferByRoundingsAloneWhenRoutedAlike) {
    RoutedAlike result;
    for (std::uint64_t seed = 20; seed < 24; ++seed) {
        RecordRouting record;
        auto [opened, engine] = load_engine(model_folder(GetParam()), options(&record));
        const std::int64_t vocab = engine->config().vocab_size;
        const auto ids = some_ids(66, vocab, seed);
        const auto prefilled = all_rows(*engine, ids);
        ForceRouting force(record.record());
        EngineOptions exact = options(&force);
        exact.precision = ops::Precision::kF32;
        auto [exact_opened, exact_engine] = load_engine(model_folder(GetParam()), exact);
        const auto truth = all_rows(*exact_engine, ids);
        force.rewind();
        auto [stepped_opened, stepped] = load_engine(model_folder(GetParam()), options(&force));
        const SequenceId id = open(*stepped);
        auto decoded = prefill(*stepped, id, {ids[0]});
        for (std::size_t i = 1; i < ids.size(); ++i) {
            const auto row = decode(*stepped, id, ids[i]);
            decoded.insert(decoded.end(), row.begin(), row.end());
        }
        result.add(truth, prefilled, decoded, vocab);
    }
    result.expect_roundings_only(fmt::format("{}, bf16 prefill against decode", GetParam()));
}

TEST(ForcedRouting, ByTheRunsOwnRecordChangesNothing) {
    RecordRouting record;
    const auto ids = some_ids(70, 448, 50);
    auto [opened, engine] = load_engine(synthetic_model("moe-tied-r2"), options(&record));
    const auto expected = all_rows(*engine, ids);
    EXPECT_EQ(record.record().tokens(0), 70);
    EXPECT_EQ(record.record().per_token(0), 4);
    ForceRouting force(record.record());
    auto [forced_opened, forced] = load_engine(synthetic_model("moe-tied-r2"), options(&force));
    EXPECT_EQ(all_rows(*forced, ids), expected);
    force.rewind();
    EXPECT_EQ(all_rows(*forced, ids), expected);
}

TEST(ForcedRouting, SendsTokensWhereTheRecordSays) {
    RecordRouting record;
    const auto ids = some_ids(20, 448, 51);
    auto [opened, engine] = load_engine(synthetic_model("moe-tied-r2"), options(&record));
    const auto natural = all_rows(*engine, ids);
    // Everybody to experts 9, 3, 0 and 12, in every layer.
    const std::int32_t chosen[4] = {9, 3, 0, 12};
    RoutingRecord other;
    for (std::int32_t layer = 0; layer < engine->config().layer_count(); ++layer)
        for (int token = 0; token < 20; ++token)
            other.append(layer, {reinterpret_cast<const std::byte*>(chosen), DType::kI32, {1, 4}});
    struct Seen : NodeObserver {
        explicit Seen(RoutingRecord record) : force(std::move(record)) {}
        Status after(const Launched& launched) override {
            LR_TRY(force.after(launched));
            if (const auto* args = std::get_if<ops::RoutingIndicesArgs>(&launched.args))
                for (std::int32_t e = 0; e < 16; ++e) {
                    const bool used = e == 9 || e == 3 || e == 0 || e == 12;
                    EXPECT_EQ(args->counts.as<std::int32_t>()[e], used ? 20 : 0);
                }
            return {};
        }
        ForceRouting force;
    } seen(other);
    auto [forced_opened, forced] = load_engine(synthetic_model("moe-tied-r2"), options(&seen));
    EXPECT_NE(all_rows(*forced, ids), natural);
}

TEST(ForcedRouting, ARecordThatEndsFailsTheStep) {
    RecordRouting record;
    auto [opened, engine] = load_engine(synthetic_model("moe-tied-r2"), options(&record));
    all_rows(*engine, {1, 2, 3});
    ForceRouting force(record.record());
    auto [forced_opened, forced] = load_engine(synthetic_model("moe-tied-r2"), options(&force));
    const SequenceId id = open(*forced);
    StepInput input{.phase = graph::Phase::kPrefill};
    input.pieces.push_back({.sequence = id, .tokens = {1, 2, 3, 4}});
    const auto output = forced->wait(*forced->submit(input));
    ASSERT_FALSE(output);
    EXPECT_NE(output.error().message().find("forced routing: expected 4 more tokens of 4 experts, "
                                            "the record has 3 of 4"),
              std::string::npos)
        << output.error().message();
}

} // namespace
} // namespace lr::engine
