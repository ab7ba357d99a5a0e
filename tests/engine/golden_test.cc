// SPDX-License-Identifier: Apache-2.0
//
// The engine against Hugging Face transformers in float32 (tools/goldens/README.md describes the
// files).
//
// f32 mode: every logit that a golden holds, at every position, by prefill of every length and by
// decode token by token, within 1e-4 of the row's standard deviation; every state within 1e-4 of
// its norm. bf16 mode: no further from the goldens than transformers in bfloat16 is from its own
// float32.
#include "checkpoint/safetensors.h"
#include "tests/checkpoint/digest.h"
#include "tests/engine/compare.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>

namespace lr::engine {
namespace {

constexpr double kBound = 1e-4;
constexpr int kProjections = 16;

class Golden {
  public:
    explicit Golden(const std::string& model) : folder_(source_path("tests/goldens/" + model)) {
        auto file = checkpoint::SafetensorsFile::open(folder_ + "/golden.safetensors");
        EXPECT_TRUE(file) << (file ? "" : file.error().message());
        file_.emplace(std::move(*file));
        const auto text = read_text_file(folder_ + "/meta.json");
        EXPECT_TRUE(text);
        meta_ = *parse_json(*text, folder_ + "/meta.json");
    }

    std::string weights_digest() const { return meta_.find("weights")->as_string(); }
    const Json& prompts() const { return *meta_.find("prompts"); }

    template <typename T> std::vector<T> values(const std::string& name) const {
        const auto* tensor = file_->find(name);
        EXPECT_NE(tensor, nullptr) << name;
        std::vector<T> out(static_cast<std::size_t>(tensor->bytes) / sizeof(T));
        std::memcpy(out.data(), tensor->data, static_cast<std::size_t>(tensor->bytes));
        return out;
    }

  private:
    std::string folder_;
    std::optional<checkpoint::SafetensorsFile> file_;
    Json meta_;
};

// 16 seeded sums of +-values; see tools/goldens.
std::vector<double> project(const std::vector<float>& values) {
    const numerics::CounterRng rng("projection", 0);
    std::vector<double> sums(kProjections, 0.0);
    for (std::size_t row = 0; row < sums.size(); ++row)
        for (std::size_t i = 0; i < values.size(); ++i)
            sums[row] += rng.bits((static_cast<std::uint64_t>(row) << 32) + i) >> 63 == 0
                             ? values[i]
                             : -values[i];
    return sums;
}

struct Case {
    std::string model, prompt;
    friend std::ostream& operator<<(std::ostream& out, const Case& c) {
        return out << c.model << " " << c.prompt;
    }
};

class Goldens : public testing::TestWithParam<Case> {
  protected:
    Goldens() : golden_(GetParam().model), key_(GetParam().prompt + ".") {
        ids_ = golden_.values<std::int32_t>(key_ + "ids");
        columns_ = golden_.values<std::int32_t>(key_ + "columns");
        lengths_ = golden_.values<std::int32_t>(key_ + "lengths");
        std_ = golden_.values<float>(key_ + "logit_std");
    }

    std::string folder() const { return model_folder(GetParam().model); }

    Loaded load(ops::Precision precision) const {
        EngineOptions options;
        options.threads = 2;
        options.precision = precision;
        options.context = 256;
        options.sequences = 2;
        return load_engine(folder(), options);
    }

    // Largest difference of logits [rows, V] from the golden's columns, rows `first` on.
    double column_error(const std::vector<float>& logits, const std::vector<float>& golden,
                        std::size_t first, std::int64_t vocab, double* squares = nullptr) const {
        double worst = 0;
        const std::size_t rows = logits.size() / static_cast<std::size_t>(vocab);
        for (std::size_t r = 0; r < rows; ++r)
            for (std::size_t c = 0; c < columns_.size(); ++c) {
                const double ours = logits[r * static_cast<std::size_t>(vocab) +
                                           static_cast<std::size_t>(columns_[c])];
                const double theirs = golden[(first + r) * columns_.size() + c];
                const double error = std::abs(ours - theirs) / std_[first + r];
                worst = worse(worst, error);
                if (squares)
                    *squares += error * error;
            }
        return worst;
    }

    // Largest difference of full rows where the golden holds them.
    double row_error(const std::vector<float>& logits, std::int64_t vocab) const {
        const auto rows = golden_.values<std::int32_t>(key_ + "rows");
        const auto golden = golden_.values<float>(key_ + "row_logits");
        const auto width = static_cast<std::size_t>(vocab);
        double worst = 0;
        for (std::size_t i = 0; i < rows.size(); ++i) {
            const auto row = static_cast<std::size_t>(rows[i]);
            for (std::size_t v = 0; v < width; ++v)
                worst = worse(worst, std::abs(static_cast<double>(logits[row * width + v]) -
                                              golden[i * width + v]) /
                                         std_[row]);
        }
        return worst;
    }

    // Largest difference of any state's projections from the golden, over the state's norm.
    // run 0: prefill; run 1: decode.
    double state_error(Engine& engine, SequenceId id, std::size_t run, std::size_t length_index) {
        static constexpr std::array kNames = {"conv", "recurrent", "key", "value"};
        double worst = 0;
        for (std::int32_t layer = 0; layer < engine.config().layer_count(); ++layer)
            for (graph::StateKind kind : state_kinds(engine, layer)) {
                const char* name = kNames[static_cast<std::size_t>(kind)];
                const auto golden =
                    golden_.values<float>(key_ + "layer" + std::to_string(layer) + "." + name);
                const std::size_t at = (run * lengths_.size() + length_index) * (kProjections + 1);
                const double norm = golden[at + kProjections];
                const auto sums = project(state_floats(engine, id, layer, kind));
                for (std::size_t j = 0; j < sums.size(); ++j)
                    worst = worse(worst, std::abs(sums[j] - golden[at + j]) / norm);
            }
        return worst;
    }

    Golden golden_;
    std::string key_;
    std::vector<std::int32_t> ids_, columns_, lengths_;
    std::vector<float> std_;
};

std::vector<Case> cases() {
    std::vector<Case> all;
    for (const RandomModel& model : random_models())
        all.push_back({model.name, "random"});
    all.push_back({"tiny", "text"});
    all.push_back({"tiny", "chat"});
    return all;
}

INSTANTIATE_TEST_SUITE_P(Engine, Goldens, testing::ValuesIn(cases()), [](const auto& info) {
    return test_name(info.param.model + "_" + info.param.prompt);
});

// A golden speaks of one set of weights. When this fails, the weights have changed: the rules of
// the synthetic writer, or models/tiny. The goldens must then be made anew.
TEST_P(Goldens, SpeakOfTheseWeights) {
    const auto weights = checkpoint::Checkpoint::open(folder());
    ASSERT_TRUE(weights) << weights.error().message();
    EXPECT_EQ(fmt::format("{:016x}", checkpoint::digest(*weights)), golden_.weights_digest());
}

TEST_P(Goldens, F32PrefillAgreesAtEveryLengthAndPosition) {
    auto [opened, engine] = load(ops::Precision::kF32);
    const std::int64_t vocab = engine->config().vocab_size;
    const auto golden = golden_.values<float>(key_ + "prefill_logits");
    double logits_worst = 0, states_worst = 0;
    for (std::size_t i = 0; i < lengths_.size(); ++i) {
        const auto sequence = engine->open_sequence();
        ASSERT_TRUE(sequence);
        const auto logits =
            prefill(*engine, *sequence, {ids_.begin(), ids_.begin() + lengths_[i]}, Logits::kAll);
        ASSERT_EQ(std::ssize(logits), lengths_[i] * vocab);
        logits_worst = worse(logits_worst, column_error(logits, golden, 0, vocab));
        if (i + 1 == lengths_.size())
            logits_worst = worse(logits_worst, row_error(logits, vocab));
        states_worst = worse(states_worst, state_error(*engine, *sequence, 0, i));
        EXPECT_TRUE(engine->close_sequence(*sequence).ok());
    }
    std::printf("%s.%s prefill: logits %.2e of std, states %.2e of norm\n",
                GetParam().model.c_str(), GetParam().prompt.c_str(), logits_worst, states_worst);
    EXPECT_LE(logits_worst, kBound);
    EXPECT_LE(states_worst, kBound);
}

TEST_P(Goldens, F32DecodeAgreesAtEveryPosition) {
    auto [opened, engine] = load(ops::Precision::kF32);
    const std::int64_t vocab = engine->config().vocab_size;
    const auto golden = golden_.values<float>(key_ + "decode_logits");
    const auto sequence = engine->open_sequence();
    ASSERT_TRUE(sequence);
    double logits_worst = 0, states_worst = 0;
    for (std::size_t i = 0; i < ids_.size(); ++i) {
        const auto logits =
            i == 0 ? prefill(*engine, *sequence, {ids_[0]}) : decode(*engine, *sequence, ids_[i]);
        logits_worst = worse(logits_worst, column_error(logits, golden, i, vocab));
        const auto at = std::find(lengths_.begin(), lengths_.end(), static_cast<int>(i) + 1);
        if (at != lengths_.end())
            states_worst =
                worse(states_worst, state_error(*engine, *sequence, 1,
                                                static_cast<std::size_t>(at - lengths_.begin())));
    }
    std::printf("%s.%s decode: logits %.2e of std, states %.2e of norm\n", GetParam().model.c_str(),
                GetParam().prompt.c_str(), logits_worst, states_worst);
    EXPECT_LE(logits_worst, kBound);
    EXPECT_LE(states_worst, kBound);
}

// The root-mean-square error of each row of logits, over the row's standard deviation.
class RowErrors {
  public:
    void add(double squares, std::size_t count) {
        rows_.push_back(std::sqrt(squares / static_cast<double>(count)));
    }
    double median() {
        std::sort(rows_.begin(), rows_.end());
        return rows_[rows_.size() / 2];
    }
    double rms() const {
        double sum = 0;
        for (double row : rows_)
            sum += row * row;
        return std::sqrt(sum / static_cast<double>(rows_.size()));
    }

  private:
    std::vector<double> rows_;
};

// Judged by the median row: a row where a bf16 rounding flips a route is a coin toss for either
// side. Decode keeps q, k and the state in f32, as transformers does. Prefill stores q, k, u, w,
// the chunk states and new values in bf16 (the engine's contract), where transformers runs the
// whole chunk in f32: for that it may be a tenth further away.
TEST_P(Goldens, Bf16MedianRowIsNoFurtherThanTransformersInBfloat16) {
    auto [opened, engine] = load(ops::Precision::kModel);
    const std::int64_t vocab = engine->config().vocab_size;
    const auto golden = golden_.values<float>(key_ + "prefill_logits");
    const auto whole = engine->open_sequence(), stepped = engine->open_sequence();
    ASSERT_TRUE(whole && stepped);
    const auto logits = prefill(*engine, *whole, ids_, Logits::kAll);
    RowErrors prefilled, decoded;
    Agreement agreement;
    for (std::size_t i = 0; i < ids_.size(); ++i) {
        const auto first = logits.begin() + static_cast<std::ptrdiff_t>(i) * vocab;
        double squares = 0;
        column_error({first, first + vocab}, golden, i, vocab, &squares);
        prefilled.add(squares, columns_.size());
        const auto row =
            i == 0 ? prefill(*engine, *stepped, {ids_[0]}) : decode(*engine, *stepped, ids_[i]);
        squares = 0;
        column_error(row, golden, i, vocab, &squares);
        decoded.add(squares, columns_.size());
        agreement.add({first, first + vocab}, row);
    }
    const Json& theirs = *golden_.prompts().find(GetParam().prompt)->find("bf16")->find("columns");
    const double median = theirs.find("median_row_rms")->as_double();
    std::printf("%s.%s bf16, median row (rms): prefill %.5f (%.5f), decode %.5f (%.5f), "
                "transformers %.5f (%.5f)\n",
                GetParam().model.c_str(), GetParam().prompt.c_str(), prefilled.median(),
                prefilled.rms(), decoded.median(), decoded.rms(), median,
                theirs.find("rms")->as_double());
    std::printf("%s.%s bf16, prefill against decode: KL mean %.2e, worst %.2e, %d of %zu rows have "
                "another likeliest token, the widest by a lead of %.1e\n",
                GetParam().model.c_str(), GetParam().prompt.c_str(), agreement.mean(),
                agreement.worst(), agreement.flips(), ids_.size(), agreement.widest_flip());
    if (GetParam().model == "tiny") {
        EXPECT_LE(agreement.worst(), 1e-3);
        EXPECT_LE(agreement.widest_flip(), 1e-2);
    }
    EXPECT_LE(decoded.median(), median);
    EXPECT_LE(prefilled.median(), 1.1 * median);
}

} // namespace
} // namespace lr::engine
