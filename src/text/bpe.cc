// SPDX-License-Identifier: Apache-2.0
#include "text/bpe.h"

#include "core/check.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <utility>

namespace lr::text {

namespace {

constexpr std::uint32_t kNone = 0xFFFFFFFFu;

std::uint64_t pair_key(std::int32_t left, std::int32_t right) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
           static_cast<std::uint32_t>(right);
}

std::size_t hash_pair(std::uint64_t pair) {
    const std::uint64_t hash = pair * 0x9E3779B97F4A7C15u;
    return static_cast<std::size_t>(hash ^ hash >> 32);
}

} // namespace

MergeTable::MergeTable(std::size_t most_rules)
    : slots_(std::bit_ceil(2 * most_rules + 1), Rule{0, kFree, -1}) {}

std::size_t MergeTable::slot_of(std::uint64_t pair) const {
    std::size_t slot = hash_pair(pair) & (slots_.size() - 1);
    while (slots_[slot].rank != kFree && slots_[slot].pair != pair)
        slot = (slot + 1) & (slots_.size() - 1);
    return slot;
}

bool MergeTable::add(const MergeRule& rule) {
    LR_CHECK_LT(rules_, slots_.size() / 2);
    const std::uint64_t pair = pair_key(rule.left, rule.right);
    Rule& slot = slots_[slot_of(pair)];
    if (slot.rank != kFree)
        return false;
    slot = {pair, rules_++, rule.result};
    return true;
}

void MergeTable::prefetch(std::int32_t left, std::int32_t right) const {
    __builtin_prefetch(&slots_[hash_pair(pair_key(left, right)) & (slots_.size() - 1)]);
}

const MergeTable::Rule* MergeTable::find(std::int32_t left, std::int32_t right) const {
    const Rule& slot = slots_[slot_of(pair_key(left, right))];
    return slot.rank == kFree ? nullptr : &slot;
}

BytePairEncoder::BytePairEncoder(Vocabulary vocabulary, MergeTable merges, bool ignore_merges)
    : vocabulary_(std::move(vocabulary)), ignore_merges_(ignore_merges), merges_(std::move(merges)),
      whole_(new std::atomic<Whole>[static_cast<std::size_t>(vocabulary_.size())]) {
    for (int byte = 0; byte < 256; ++byte) {
        const char c = static_cast<char>(byte);
        byte_ids_[static_cast<std::size_t>(byte)] = vocabulary_.find(std::string_view(&c, 1));
        LR_CHECK_GE(byte_ids_[static_cast<std::size_t>(byte)], 0);
    }
    for (std::int32_t id = 0; id < vocabulary_.size(); ++id)
        whole_[static_cast<std::size_t>(id)].store(Whole::kUnknown, std::memory_order_relaxed);
}

void BytePairEncoder::encode(std::string_view word, std::uint64_t hash, Scratch& scratch,
                             std::vector<std::int32_t>& ids) const {
    const std::int32_t token = vocabulary_.find(word, hash);
    if (token < 0)
        return merge(word, scratch, ids);
    std::atomic<Whole>& whole = whole_[static_cast<std::size_t>(token)];
    const Whole known = whole.load(std::memory_order_relaxed);
    if (ignore_merges_ || known == Whole::kYes) {
        ids.push_back(token);
        return;
    }
    const std::size_t before = ids.size();
    merge(word, scratch, ids);
    if (known == Whole::kUnknown)
        whole.store(ids.size() == before + 1 ? Whole::kYes : Whole::kNo, std::memory_order_relaxed);
}

// Looks up the rule for a symbol and its right neighbour and queues the pair.
void BytePairEncoder::rank_pair(Scratch& scratch, std::uint32_t symbol) const {
    Scratch::Symbol& left = scratch.symbols[symbol];
    left.rank = kNone;
    if (left.right == kNone)
        return;
    const MergeTable::Rule* rule = merges_.find(left.id, scratch.symbols[left.right].id);
    if (rule == nullptr)
        return;
    left.rank = rule->rank;
    scratch.queue.push_back(std::uint64_t{left.rank} << 32 | symbol);
}

// A queued pair is stale when its symbol is gone or now has another rank.
void BytePairEncoder::merge(std::string_view word, Scratch& scratch,
                            std::vector<std::int32_t>& ids) const {
    LR_CHECK_LT(word.size(), kNone);
    std::vector<Scratch::Symbol>& symbols = scratch.symbols;
    std::vector<std::uint64_t>& queue = scratch.queue;
    const auto n = static_cast<std::uint32_t>(word.size());
    symbols.resize(n);
    queue.clear();
    for (std::uint32_t i = 0; i < n; ++i)
        symbols[i] = {byte_ids_[static_cast<unsigned char>(word[i])], kNone, i == 0 ? kNone : i - 1,
                      i + 1 == n ? kNone : i + 1};
    for (std::uint32_t i = 0; i + 1 < n; ++i)
        rank_pair(scratch, i);
    std::make_heap(queue.begin(), queue.end(), std::greater<>());

    const auto push_rank_of = [&](std::uint32_t symbol) {
        const std::size_t before = queue.size();
        rank_pair(scratch, symbol);
        if (queue.size() > before)
            std::push_heap(queue.begin(), queue.end(), std::greater<>());
    };
    while (!queue.empty()) {
        std::pop_heap(queue.begin(), queue.end(), std::greater<>());
        const auto rank = static_cast<std::uint32_t>(queue.back() >> 32);
        const auto at = static_cast<std::uint32_t>(queue.back());
        queue.pop_back();
        Scratch::Symbol& left = symbols[at];
        if (left.id < 0 || left.rank != rank)
            continue;
        Scratch::Symbol& right = symbols[left.right];
        left.id = merges_.find(left.id, right.id)->result;
        right.id = -1;
        left.right = right.right;
        if (left.right != kNone)
            symbols[left.right].left = at;
        push_rank_of(at);
        if (left.left != kNone)
            push_rank_of(left.left);
    }
    for (std::uint32_t i = 0; i != kNone; i = symbols[i].right)
        ids.push_back(symbols[i].id);
}

} // namespace lr::text
