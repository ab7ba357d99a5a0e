// SPDX-License-Identifier: Apache-2.0
#include "text/bpe.h"

#include "core/check.h"

#include <algorithm>
#include <bit>
#include <functional>

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

BytePairEncoder::BytePairEncoder(Vocabulary vocabulary, const std::vector<MergeRule>& merges,
                                 bool ignore_merges)
    : vocabulary_(std::move(vocabulary)), ignore_merges_(ignore_merges),
      slots_(std::bit_ceil(2 * merges.size() + 1), Slot{0, kNone, -1}),
      whole_(new std::atomic<Whole>[static_cast<std::size_t>(vocabulary_.size())]) {
    for (int byte = 0; byte < 256; ++byte) {
        const char c = static_cast<char>(byte);
        byte_ids_[static_cast<std::size_t>(byte)] = vocabulary_.find(std::string_view(&c, 1));
        LR_CHECK_GE(byte_ids_[static_cast<std::size_t>(byte)], 0);
    }
    for (std::int32_t id = 0; id < vocabulary_.size(); ++id)
        whole_[static_cast<std::size_t>(id)].store(Whole::kUnknown, std::memory_order_relaxed);
    for (std::size_t rank = 0; rank < merges.size(); ++rank) {
        const std::uint64_t pair = pair_key(merges[rank].left, merges[rank].right);
        std::size_t slot = hash_pair(pair) & (slots_.size() - 1);
        while (slots_[slot].rank != kNone)
            slot = (slot + 1) & (slots_.size() - 1);
        slots_[slot] = {pair, static_cast<std::uint32_t>(rank), merges[rank].result};
    }
}

const BytePairEncoder::Slot* BytePairEncoder::find_rule(std::int32_t left,
                                                        std::int32_t right) const {
    const std::uint64_t pair = pair_key(left, right);
    std::size_t slot = hash_pair(pair) & (slots_.size() - 1);
    for (; slots_[slot].rank != kNone; slot = (slot + 1) & (slots_.size() - 1))
        if (slots_[slot].pair == pair)
            return &slots_[slot];
    return nullptr;
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
    const Slot* rule = find_rule(left.id, scratch.symbols[left.right].id);
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
        left.id = find_rule(left.id, right.id)->result;
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
