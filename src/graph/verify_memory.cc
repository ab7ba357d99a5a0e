// SPDX-License-Identifier: Apache-2.0
#include "graph/plan_facts.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <span>

namespace lr::graph {
namespace {

class MemoryVerifier {
  public:
    MemoryVerifier(const PlanFacts& facts, const MemoryPlan& memory)
        : f_(facts), memory_(memory), tensors_(facts.step.tensors) {}

    Status verify() {
        if (memory_.offset.size() != tensors_.size())
            return fail(Code::kInternal, "memory plan: expected {} tensors, got {}",
                        tensors_.size(), memory_.offset.size());
        const auto swallower = f_.swallower();
        for (std::size_t t = 0; t < tensors_.size(); ++t)
            LR_TRY(check_place(t, swallower[t] >= 0));
        find_touches();
        return check_sharing();
    }

  private:
    std::int64_t begin(std::size_t t) const { return memory_.offset[t]; }
    std::int64_t end(std::size_t t) const { return memory_.offset[t] + tensors_[t].bytes(); }
    bool placed(std::size_t t) const { return memory_.offset[t] >= 0; }

    Status check_place(std::size_t t, bool swallowed) const {
        const Tensor& tensor = tensors_[t];
        const bool belongs = tensor.role == Role::kActivation || tensor.role == Role::kOutput;
        if (!placed(t)) {
            if (!belongs || swallowed)
                return {};
            return fail(Code::kInternal, "{}: expected a place in the arena, got none",
                        tensor.name);
        }
        if (!belongs)
            return fail(Code::kInternal,
                        "{}: the engine's, not the step's: expected no place in the arena, got "
                        "offset {}",
                        tensor.name, begin(t));
        if (begin(t) % kArenaAlign != 0)
            return fail(Code::kInternal, "{}: expected an offset that is a multiple of {}, got {}",
                        tensor.name, kArenaAlign, begin(t));
        if (end(t) > memory_.arena_bytes)
            return fail(Code::kInternal,
                        "{}: expected it within the arena's {} bytes, got [{}, {})", tensor.name,
                        memory_.arena_bytes, begin(t), end(t));
        return {};
    }

    // Launches that touch each placed tensor, one tensor after another in `touches_`.
    void find_touches() {
        const auto for_each = [&](auto visit) {
            for (std::size_t n = 0; n < f_.step.nodes.size(); ++n)
                for (const Use& use : f_.step.nodes[n].uses)
                    if (const auto t = static_cast<std::size_t>(use.tensor); placed(t))
                        visit(t, f_.launches[n]);
        };
        first_touch_.assign(tensors_.size() + 1, 0);
        for_each([&](std::size_t t, const auto& launches) { first_touch_[t] += launches.size(); });
        std::exclusive_scan(first_touch_.begin(), first_touch_.end(), first_touch_.begin(),
                            std::size_t{0});
        touches_.resize(first_touch_.back());
        std::vector<std::size_t> next(first_touch_.begin(), first_touch_.end() - 1);
        for_each([&](std::size_t t, const auto& launches) {
            for (std::int32_t launch : launches)
                touches_[next[t]++] = launch;
        });
    }
    std::span<const std::int32_t> touches(std::size_t t) const {
        return std::span(touches_).subspan(first_touch_[t], first_touch_[t + 1] - first_touch_[t]);
    }

    // Gives the arena's bytes to tensor after tensor, in the order in which the list of launches
    // first touches them. Each must come after those that own its bytes so far; these came after
    // whoever had them before, so every pair that shares a byte is ordered.
    Status check_sharing() {
        std::vector<std::pair<std::int32_t, std::size_t>> by_time;
        for (std::size_t t = 0; t < tensors_.size(); ++t)
            if (placed(t) && tensors_[t].bytes() > 0) {
                const auto ids = touches(t);
                by_time.emplace_back(ids.empty() ? -1 : *std::min_element(ids.begin(), ids.end()),
                                     t);
            }
        std::sort(by_time.begin(), by_time.end());
        for (const auto& [time, t] : by_time)
            LR_TRY(give(t));
        return {};
    }

    Status give(std::size_t t) {
        auto at = owners_.lower_bound(begin(t));
        if (at != owners_.begin() && std::prev(at)->second.end > begin(t))
            --at;
        while (at != owners_.end() && at->first < end(t)) {
            const auto [first, owner] = *at;
            LR_TRY(check_pair(owner.tensor, t));
            at = owners_.erase(at);
            if (first < begin(t))
                owners_.emplace(first, Owner{begin(t), owner.tensor});
            if (owner.end > end(t))
                at = owners_.emplace(end(t), owner).first;
        }
        owners_.emplace(begin(t), Owner{end(t), t});
        return {};
    }

    // `early` had the bytes, `late` gets them.
    Status check_pair(std::size_t early, std::size_t late) const {
        const auto where = [&] {
            return fmt::format("{} [{}, {}) and {} [{}, {})", tensors_[early].name, begin(early),
                               end(early), tensors_[late].name, begin(late), end(late));
        };
        for (std::size_t t : {early, late})
            if (tensors_[t].role == Role::kOutput)
                return fail(Code::kInternal,
                            "{}: expected bytes of its own for the output {}, got shared ones",
                            where(), tensors_[t].name);
        for (std::int32_t a : touches(early))
            for (std::int32_t b : touches(late))
                if (!f_.before(a, b))
                    return fail(Code::kInternal,
                                "{}: expected the launches of the one ordered before those of the "
                                "other, got {}",
                                where(),
                                a == b ? fmt::format("both touched by {}", f_.launch(a).name)
                                       : fmt::format("{} and {} with {}", f_.launch(a).name,
                                                     f_.launch(b).name, f_.relation(a, b)));
        return {};
    }

    struct Owner {
        std::int64_t end;
        std::size_t tensor;
    };

    const PlanFacts& f_;
    const MemoryPlan& memory_;
    const std::vector<Tensor>& tensors_;
    std::vector<std::size_t> first_touch_; // of each tensor, an index into touches_
    std::vector<std::int32_t> touches_;
    std::map<std::int64_t, Owner> owners_; // of bytes, by their first
};

} // namespace

std::string PlanFacts::names(const std::vector<std::int32_t>& ids) const {
    std::string text;
    for (std::int32_t id : ids)
        text += (text.empty() ? "" : ", ") + launch(id).name;
    return text;
}

std::vector<std::int32_t> PlanFacts::swallower() const {
    std::vector<std::int32_t> by(step.tensors.size(), -1);
    for (std::size_t i = 0; i < plan.launches.size(); ++i)
        for (TensorId tensor : plan.launches[i].swallowed)
            by[static_cast<std::size_t>(tensor)] = static_cast<std::int32_t>(i);
    return by;
}

Status verify_memory(const PlanFacts& facts, const MemoryPlan& memory) {
    return MemoryVerifier(facts, memory).verify();
}

} // namespace lr::graph
