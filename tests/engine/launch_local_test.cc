// SPDX-License-Identifier: Apache-2.0
//
// Every node of a step on several ranks, in bf16, given one rank's inputs (its shard of them): what
// a rank computes from whole rows and heads has one rank's bits, and sums over ranks are as near as
// their roundings allow (partial_sums.h).
//
// One rank runs first and all that its nodes wrote is kept. Then the ranks run the same steps;
// after each node what it wrote is compared with its shard of what was kept, and replaced by it.
#include "tests/engine/compare.h"
#include "tests/engine/partial_sums.h"

#include <mutex>
#include <set>

namespace lr::engine {
namespace {

struct Kept {
    DType dtype = DType::kF32;
    Shape shape;
    std::vector<std::byte> bytes = {};

    ConstView view() const { return {bytes.data(), dtype, shape}; }
};

// Counts the steps of a rank by their first node.
class StepCount {
  public:
    int after(const Launched& launched) { return count_ += launched.node.id == "pro.1" ? 1 : 0; }

  private:
    int count_ = 0;
};

class OneRank : public NodeObserver {
  public:
    Status after(const Launched& launched) override {
        const int step = steps_.after(launched);
        partials_[step].after(launched);
        for (const Launched::Written& written : launched.written()) {
            const View view = written.view;
            const Kept kept{view.dtype, view.shape, {view.data, view.data + view.bytes()}};
            nodes_[{step, launched.node.id, written.slot}] = kept;
            tensors_[{step, name_of(launched, written)}] = kept;
        }
        return {};
    }

    static const std::string& name_of(const Launched& launched, const Launched::Written& written) {
        return launched.step.tensors[static_cast<std::size_t>(written.tensor)].name;
    }
    // What the node wrote; where one rank does not launch it, what the tensor held at the end.
    const Kept& find(int step, const Launched& launched, const Launched::Written& written) const {
        const auto found = nodes_.find({step, launched.node.id, written.slot});
        return found != nodes_.end() ? found->second : tensor(step, name_of(launched, written));
    }
    const Kept& tensor(int step, const std::string& name) const {
        return tensors_.at({step, name});
    }
    const PartialSums& partials(int step) const { return partials_.at(step); }

  private:
    StepCount steps_;
    std::map<std::tuple<int, std::string, std::string>, Kept> nodes_;
    std::map<std::pair<int, std::string>, Kept> tensors_;
    std::map<int, PartialSums> partials_;
};

// Positions along one axis of a whole tensor that a rank holds.
struct Range {
    std::int64_t first, count;
};

// The elements of `whole` at these positions of the first axis where the shapes differ.
std::vector<std::byte> take(const Kept& whole, const Shape& local,
                            const std::vector<Range>& ranges) {
    int axis = 0;
    while (axis < local.rank() && whole.shape[axis] == local[axis])
        ++axis;
    if (axis == local.rank())
        return whole.bytes;
    std::int64_t outer = 1, inner = 1;
    for (int i = 0; i < local.rank(); ++i)
        (i < axis ? outer : inner) *= i == axis ? 1 : local[i];
    const std::int64_t unit = dtype_bytes(whole.dtype, inner);
    std::vector<std::byte> part;
    for (std::int64_t o = 0; o < outer; ++o)
        for (const Range& range : ranges) {
            const auto* from = whole.bytes.data() + (o * whole.shape[axis] + range.first) * unit;
            part.insert(part.end(), from, from + range.count * unit);
        }
    return part;
}

class ManyRanks : public NodeObserver {
  public:
    ManyRanks(const OneRank& one, const model::Model& model) : one_(one), model_(model) {}

    Status after(const Launched& launched) override {
        const std::lock_guard lock(mutex_);
        const auto rank = static_cast<std::size_t>(launched.rank);
        step_ = steps_[rank].after(launched);
        partials_[rank].after(launched);
        launched_ = &launched;
        shard_ = launched.step.shard;
        if (const auto* norm = std::get_if<ops::AddRmsnormArgs>(&launched.args);
            norm && norm->ranks > 1)
            check_norm(*norm);
        for (const Launched::Written& written : launched.written())
            check(written);
        return {};
    }

    double worst_share() const { return worst_share_; }
    std::int64_t exact() const { return exact_; }
    std::int64_t summed() const { return summed_; }
    std::int64_t apart() const { return apart_; }

  private:
    std::int32_t world() const { return shard_.tp * shard_.ep; }
    bool moe() const { return model_.config().moe(); }

    // This rank's part of a sum that is still to be added up.
    bool is_partial(const std::string& part) const {
        if (part == "x" || part == "A")
            return shard_.tp > 1;
        if (part == "U" || part == "Y_s" || part == "Y_r")
            return world() > 1;
        return part == "Z" && shard_.tp > 1;
    }

    void check(const Launched::Written& written) {
        const std::string& name = OneRank::name_of(*launched_, written);
        const std::string part = last_part(name);
        const Kept& kept = one_.find(step_, *launched_, written);
        if (const auto* sum = std::get_if<ops::AllReduceArgs>(&launched_->args)) {
            check_sum(*sum, name, kept);
        } else if (const auto* norm = std::get_if<ops::AddRmsnormArgs>(&launched_->args);
                   norm && norm->ranks > 1) {
            std::copy(kept.bytes.begin(), kept.bytes.end(), written.view.data); // check_norm looked
        } else if (moe() && (part == "F" || part == "Z")) {
            if (!is_partial(part))
                check_expert_rows(written.view, kept);
        } else if (!is_partial(part) && !(shard_.ep > 1 && is_row_list(part))) {
            check_exact(written.view, part, take(kept, written.view.shape, ranges(part, written)));
        }
    }

    // Lists of expert rows: with several expert ranks each has its own, from ids that are the same.
    static bool is_row_list(const std::string& part) {
        static const std::set<std::string> kLists = {"counts", "start", "end", "row_map", "row_of"};
        return kLists.contains(part);
    }

    std::vector<Range> ranges(const std::string& part, const Launched::Written& written) const {
        static const std::map<std::string, const char*> kEntries = {
            {"C", "linear_attn.in_proj_qkvz"},
            {"BA", "linear_attn.in_proj_ba"},
            {"ba_partial", "linear_attn.in_proj_ba"},
            {"qkv", "linear_attn.conv1d"},
            {"conv_state", "linear_attn.conv1d"},
            {"QKV", "self_attn.qkv_proj"},
            {"ffn_gate_up", "mlp.gate_up_proj"},
            {"shared_gate_up", "mlp.shared_expert.gate_up_proj"}};
        std::vector<Range> found;
        if (const auto entry_name = kEntries.find(part); entry_name != kEntries.end()) {
            const model::Entry& entry = model_.entry(
                fmt::format("layers.{}.{}", launched_->node.layer, entry_name->second));
            for (const model::RowRange& rows : model::local_rows(entry, shard_)) {
                std::int64_t before = 0;
                for (std::int32_t s = 0; s < rows.source; ++s)
                    before += entry.sources[static_cast<std::size_t>(s)].shape[0];
                found.push_back({before + rows.first, rows.rows});
            }
            return found;
        }
        // Neighbouring heads, columns or vocabulary rows.
        const Shape& whole = one_.find(step_, *launched_, written).shape;
        const bool shared = part == "F_s";
        const std::int64_t ranks = shared ? world() : shard_.tp;
        const std::int64_t rank = shared ? launched_->rank : shard_.tp_rank;
        for (int axis = 0; axis < whole.rank() && found.empty(); ++axis)
            if (whole[axis] != written.view.shape[axis])
                found.push_back({rank * whole[axis] / ranks, written.view.shape[axis]});
        return found;
    }

    void check_exact(View view, const std::string& part, const std::vector<std::byte>& expected) {
        std::int64_t bytes = view.bytes();
        if (part == "h") // the last chunk is unused: all sequences are whole chunks long
            bytes = bytes / view.rows() * (launched_->step.shape.rows / ops::kGdnChunk);
        ASSERT_EQ(std::ssize(expected), view.bytes()) << launched_->node.label() << " " << part;
        EXPECT_TRUE(std::equal(view.data, view.data + bytes, expected.begin()))
            << "rank " << launched_->rank << " step " << step_ << ": " << launched_->node.label()
            << ": " << part << " differs";
        std::copy_n(expected.begin(), bytes, view.data);
        exact_ += view.shape.count();
    }

    // The rows of this rank's experts, which lie elsewhere in one rank's list.
    void check_expert_rows(View view, const Kept& kept) {
        const auto [start, end] = endpoints();
        const std::string scope = fmt::format("L{}.", launched_->node.layer);
        const ConstView whole_start = one_.tensor(step_, scope + "start").view();
        const std::int64_t first = shard_.ep_rank * start.shape[0];
        const std::int64_t width = view.shape[1];
        const std::int64_t column = width == kept.shape[1] ? 0 : shard_.tp_rank * width;
        const std::int64_t bytes = dtype_bytes(view.dtype, width);
        for (std::int64_t e = 0; e < start.shape[0]; ++e)
            for (std::int64_t i = cpu::int_at(start, e); i < cpu::int_at(end, e); ++i) {
                const std::int64_t row =
                    cpu::int_at(whole_start, first + e) + i - cpu::int_at(start, e);
                const auto* expected = kept.view().row(row) + dtype_bytes(view.dtype, column);
                EXPECT_TRUE(std::equal(view.row(i), view.row(i) + bytes, expected))
                    << launched_->node.label() << " expert " << first + e;
                std::copy_n(expected, bytes, view.row(i));
                exact_ += width;
            }
    }

    std::pair<ConstView, ConstView> endpoints() const {
        if (const auto* up = std::get_if<ops::ExpertsGateUpArgs>(&launched_->args))
            return {up->start, up->end};
        const auto& down = std::get<ops::ExpertsDownArgs>(launched_->args);
        return {down.start, down.end};
    }

    // Largest difference between the ranks' sum of a tensor and one rank's, before it is stored.
    std::vector<double> sum_error(const std::string& name, std::int32_t ranks, RankGroup group,
                                  std::size_t count) const {
        std::vector<double> error(count, 0.0);
        const auto add = [&](const Partial* partial, double additions) {
            for (std::size_t i = 0; partial && i < count; ++i)
                error[i] += partial->error[i] + additions * kV * std::abs(partial->value[i]);
        };
        add(one_.partials(step_).find(name), 1);
        const std::int32_t first = group == RankGroup::kWorld ? 0 : shard_.ep_rank * shard_.tp;
        for (std::int32_t r = first; r < first + ranks; ++r)
            add(partials_[static_cast<std::size_t>(r)].find(name), ranks + 1);
        return error;
    }

    void compare(double ours, double theirs, double bound, const char* what) {
        const double difference = std::abs(ours - theirs);
        EXPECT_LE(difference, bound) << "rank " << launched_->rank << " step " << step_ << ": "
                                     << launched_->node.label() << ": " << what;
        ++summed_;
        if (difference > 0) {
            ++apart_;
            worst_share_ = std::max(worst_share_, difference / bound);
        }
    }

    void check_sum(const ops::AllReduceArgs& args, const std::string& name, const Kept& kept) {
        const auto ours = to_doubles(args.y), theirs = to_doubles(kept.view());
        const auto error = sum_error(name, args.ranks, args.group, ours.size());
        // One rank's rounding is in its error; an embedding row is one rank's and zeros.
        const bool rounded = one_.partials(step_).find(name) != nullptr;
        for (std::size_t i = 0; i < ours.size(); ++i)
            compare(ours[i], theirs[i], error[i] + (rounded ? kU * std::abs(ours[i]) : 0.0),
                    "the sum");
        std::copy(kept.bytes.begin(), kept.bytes.end(), args.y.data);
    }

    const std::string& tensor_name(std::size_t use) const {
        const graph::TensorId id = launched_->node.uses[use].tensor;
        return launched_->step.tensors[static_cast<std::size_t>(id)].name;
    }

    // s = residual + sum: the sums' error, and s rounded on either side. y = s * inv * gain: s'
    // error, and inv's, which is relative |ds| / |s|; y rounded on either side.
    void check_norm(const ops::AddRmsnormArgs& args) {
        const std::string& x_name = tensor_name(0);
        const std::vector<double> x = to_doubles(one_.tensor(step_, x_name).view());
        const std::vector<double> residual = to_doubles(args.residual);
        std::vector<double> ds = sum_error(x_name, args.ranks, args.group, x.size());
        const std::vector<double> gain = to_doubles(args.weight);
        const std::vector<double> y = to_doubles(args.y);
        const std::vector<double> one_y = to_doubles(one_.tensor(step_, tensor_of("y")).view());
        const std::size_t width = gain.size();
        for (std::size_t row = 0; row < x.size(); row += width) {
            double squares = 0, error_squares = 0;
            for (std::size_t i = row; i < row + width; ++i) {
                const double s = residual[i] + x[i];
                ds[i] += 2 * kU * (std::abs(s) + ds[i]);
                squares += s * s;
                error_squares += ds[i] * ds[i];
            }
            const double inv = 1 / std::sqrt(squares / static_cast<double>(width) + args.eps);
            const double eta = std::sqrt(error_squares / squares);
            ASSERT_LT(eta, 0.5);
            const double spread = eta / (1 - eta) + 20 * kV;
            for (std::size_t i = row; i < row + width; ++i) {
                const double s = std::abs(residual[i] + x[i]) + ds[i];
                const double bound = std::abs(1 + gain[i - row]) * inv * (ds[i] + s * spread) +
                                     kU * (std::abs(y[i]) + std::abs(one_y[i]));
                compare(y[i], one_y[i], bound, "y");
            }
        }
        if (!args.residual_out.empty())
            check_residual(args, ds);
    }

    void check_residual(const ops::AddRmsnormArgs& args, const std::vector<double>& bound) {
        const auto ours = to_doubles(args.residual_out);
        const auto theirs = to_doubles(one_.tensor(step_, tensor_of("residual_out")).view());
        for (std::size_t i = 0; i < ours.size(); ++i)
            compare(ours[i], theirs[i], bound[i], "the residual");
    }

    const std::string& tensor_of(std::string_view slot) const {
        std::size_t use = 0;
        while (launched_->node.uses[use].slot != slot)
            ++use;
        return tensor_name(use);
    }

    const OneRank& one_;
    const model::Model& model_;
    std::mutex mutex_; // ranks come at the same time
    StepCount steps_[kMaxRanks];
    PartialSums partials_[kMaxRanks];
    // Of the call under way.
    const Launched* launched_ = nullptr;
    model::Shard shard_;
    int step_ = 0;
    double worst_share_ = 0;
    std::int64_t exact_ = 0, summed_ = 0, apart_ = 0;
};

struct Layout {
    const char* model;
    std::int32_t tp, ep;
    ops::Numerics numerics = ops::Numerics::kHf;
};

class LaunchLocal : public testing::TestWithParam<Layout> {};
INSTANTIATE_TEST_SUITE_P(
    Engine, LaunchLocal,
    testing::Values(Layout{"dense-tied-r1", 2, 1}, Layout{"dense-untied-r2", 2, 1},
                    Layout{"dense-untied-r2", 2, 1, ops::Numerics::kSeed},
                    Layout{"moe-untied-r1", 2, 1}, Layout{"moe-untied-r1", 1, 2},
                    Layout{"moe-untied-r1", 2, 2}, Layout{"moe-tied-r2", 2, 1},
                    Layout{"moe-tied-r2", 2, 2}, Layout{"dense-tied-r3", 2, 1},
                    Layout{"moe-tied-r4-top8", 2, 2}, Layout{"moe-untied-r4-top10", 1, 4},
                    Layout{"moe-tp4", 4, 1}, Layout{"moe-tp4", 4, 2}),
    [](const auto& info) {
        const bool seed = info.param.numerics == ops::Numerics::kSeed;
        return test_name(fmt::format("{}_tp{}_ep{}{}", info.param.model, info.param.tp,
                                     info.param.ep, seed ? "_seed" : ""));
    });

void run_steps(const std::string& folder, const Layout& layout, NodeObserver& observer) {
    EngineOptions options;
    options.threads = 2;
    options.context = 256;
    options.tp = layout.tp;
    options.ep = layout.ep;
    options.numerics = layout.numerics;
    options.observer = &observer;
    auto [opened, engine] = load_engine(folder, options);
    const SequenceId id = open(*engine);
    const auto ids = some_ids(130, engine->config().vocab_size, 60);
    prefill(*engine, id, {ids.begin(), ids.begin() + 128}); // whole chunks: no padding
    decode(*engine, id, ids[128]);
    decode(*engine, id, ids[129]);
}

TEST_P(LaunchLocal, NodesHaveOneRanksBitsAndSumsItsRoundings) {
    Layout layout = GetParam();
    const std::string folder = model_folder(layout.model);
    OneRank one;
    run_steps(folder, {layout.model, 1, 1, layout.numerics}, one);
    const auto opened = model::open_model(folder);
    ASSERT_TRUE(opened);
    ManyRanks ranks(one, opened->model());
    run_steps(folder, layout, ranks);
    std::printf("%s tp=%d ep=%d launch-local: %lld values bit-equal; of %lld sums %lld differ, by "
                "at most %.2f of the bound\n",
                layout.model, layout.tp, layout.ep, static_cast<long long>(ranks.exact()),
                static_cast<long long>(ranks.summed()), static_cast<long long>(ranks.apart()),
                ranks.worst_share());
    EXPECT_GT(ranks.exact(), 100000);
    EXPECT_GT(ranks.apart(), 1000);
    EXPECT_LE(ranks.worst_share(), 1.0);
    EXPECT_GT(ranks.worst_share(), 0.1); // a bound that nothing comes near says nothing
}

} // namespace
} // namespace lr::engine
