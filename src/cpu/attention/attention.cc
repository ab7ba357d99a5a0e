// SPDX-License-Identifier: Apache-2.0
#include "cpu/attention/attention.h"

#include "core/thread_pool.h"
#include "cpu/activation.h"
#include "cpu/dot_tile.h"
#include "cpu/rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace lr::cpu {
namespace {

// Rows that share the conversion of a page to f32: enough to make it cheap in prefill, few enough
// to give every core a block.
constexpr std::int64_t kBlockRows = 16;
// Channels of o that are summed over a page together.
constexpr int kLanes = 16;

struct Dims {
    std::int64_t hq, hkv, dh, group; // group = Hq / Hkv: query heads that read one KV head
};

// The running softmax of one (row, query head).
struct Head {
    float* q;   // [dh]
    float* o;   // [dh], sum of p v so far
    float* max; // [1]
    float* sum; // [1], sum of p so far
};

// Rows [first, last) of one sequence against one KV head.
struct Run {
    std::int64_t first, last;
    std::int64_t kv_head;
};

Head head_at(const Dims& dims, std::int64_t index) {
    const std::int64_t heads = kBlockRows * dims.group;
    float* q = thread_scratch(2, heads * dims.dh);
    float* o = thread_scratch(3, heads * dims.dh);
    float* max_and_sum = thread_scratch(4, heads * 2);
    return {q + index * dims.dh, o + index * dims.dh, max_and_sum + 2 * index,
            max_and_sum + 2 * index + 1};
}

// Tokens [0, count) of one page and KV head as dense f32 rows.
void load_page(ConstView cache, std::int64_t page, std::int64_t kv_head, std::int64_t count,
               const Dims& dims, float* out) {
    for (std::int64_t t = 0; t < count; ++t)
        load_floats(cache, page, (t * dims.hkv + kv_head) * dims.dh, dims.dh, out + t * dims.dh);
}

// o[c] += sum over t of p[t] v[t, c], tokens ascending. Four tokens a step: the same additions in
// the same order, with a quarter of the traffic on the sums.
void add_values(const float* p, const float* v, std::int64_t tokens, std::int64_t dh, float* o) {
    std::int64_t first = 0;
    for (; first + kLanes <= dh; first += kLanes) {
        std::array<float, kLanes> sums;
        std::copy_n(o + first, kLanes, sums.begin());
        std::int64_t t = 0;
        for (; t + 4 <= tokens; t += 4) {
            const float* v0 = v + t * dh + first;
            for (std::size_t c = 0; c < kLanes; ++c) {
                float sum = sums[c] + p[t] * v0[c];
                sum += p[t + 1] * (v0 + dh)[c];
                sum += p[t + 2] * (v0 + 2 * dh)[c];
                sums[c] = sum + p[t + 3] * (v0 + 3 * dh)[c];
            }
        }
        for (; t < tokens; ++t)
            for (std::size_t c = 0; c < kLanes; ++c)
                sums[c] += p[t] * (v + t * dh + first)[c];
        std::copy_n(sums.begin(), kLanes, o + first);
    }
    for (; first < dh; ++first)
        for (std::int64_t t = 0; t < tokens; ++t)
            o[first] += p[t] * v[t * dh + first];
}

// One page of one (row, query head). p [tokens]: q . k on entry, overwritten.
void attend(const Head& head, float* p, const float* v, std::int64_t tokens, std::int64_t dh,
            float scale) {
    float max = *head.max;
    for (std::int64_t t = 0; t < tokens; ++t) {
        p[t] = scale * p[t];
        max = std::max(max, p[t]);
    }
    const float shrink = std::exp(*head.max - max); // 0 on the first page
    float sum = *head.sum * shrink;
    exp_each(p, tokens, max, p);
    for (std::int64_t t = 0; t < tokens; ++t)
        sum += p[t];
    *head.max = max;
    *head.sum = sum;
    for (std::int64_t c = 0; c < dh; ++c)
        head.o[c] *= shrink;
    add_values(p, v, tokens, dh, head.o);
}

void start_run(const ops::AttentionArgs& args, const Dims& dims, const Run& run) {
    for (std::int64_t row = run.first; row < run.last; ++row)
        for (std::int64_t g = 0; g < dims.group; ++g) {
            const Head head = head_at(dims, (row - run.first) * dims.group + g);
            load_floats(args.q, row, (run.kv_head * dims.group + g) * dims.dh, dims.dh, head.q);
            std::fill_n(head.o, dims.dh, 0.0f);
            *head.max = -std::numeric_limits<float>::infinity();
            *head.sum = 0.0f;
        }
}

void finish_run(const ops::AttentionArgs& args, const Dims& dims, const Run& run) {
    for (std::int64_t row = run.first; row < run.last; ++row)
        for (std::int64_t g = 0; g < dims.group; ++g) {
            const Head head = head_at(dims, (row - run.first) * dims.group + g);
            for (std::int64_t c = 0; c < dims.dh; ++c)
                head.o[c] = head.o[c] / *head.sum;
            store_floats(args.o, row, (run.kv_head * dims.group + g) * dims.dh, dims.dh, head.o);
        }
}

// Tokens [start, start + loaded) of the sequence, which lie in one page. All rows' scores are taken
// together; a row then uses those that it may see.
void run_page(const ops::AttentionArgs& args, const Dims& dims, const Run& run, std::int64_t page,
              std::int64_t start, std::int64_t loaded) {
    float* k = thread_scratch(0, ops::kKvPage * dims.dh);
    float* v = thread_scratch(1, ops::kKvPage * dims.dh);
    float* scores = thread_scratch(5, kBlockRows * dims.group * ops::kKvPage);
    load_page(args.k_cache, page, run.kv_head, loaded, dims, k);
    load_page(args.v_cache, page, run.kv_head, loaded, dims, v);
    const std::int64_t heads = (run.last - run.first) * dims.group;
    dot_tile(head_at(dims, 0).q, dims.dh, heads, k, dims.dh, loaded, dims.dh, scores, ops::kKvPage);
    for (std::int64_t i = 0; i < heads; ++i) {
        const std::int64_t position = int_at(args.positions, run.first + i / dims.group);
        const std::int64_t seen = std::min(position + 1 - start, loaded);
        if (seen > 0)
            attend(head_at(dims, i), scores + i * ops::kKvPage, v, seen, dims.dh, args.scale);
    }
}

void run_sequence(const ops::AttentionArgs& args, const Dims& dims, const Run& run) {
    start_run(args, dims, run);
    const std::int32_t sequence = int_at(args.row_seq, run.first);
    LR_CHECK_LT(sequence, args.page_table.rows());
    std::int64_t length = 0; // tokens that the run's furthest row sees
    for (std::int64_t row = run.first; row < run.last; ++row) {
        const std::int64_t position = int_at(args.positions, row);
        LR_CHECK_GE(position, 0);
        length = std::max(length, position + 1);
    }
    LR_CHECK_LE(length, args.page_table.shape[1] * ops::kKvPage);

    for (std::int64_t start = 0; start < length; start += ops::kKvPage) {
        const std::int32_t page =
            args.page_table.row_as<std::int32_t>(sequence)[start / ops::kKvPage];
        LR_CHECK_GE(page, 0);
        LR_CHECK_LT(page, args.k_cache.rows());
        run_page(args, dims, run, page, start, std::min(ops::kKvPage, length - start));
    }
    finish_run(args, dims, run);
}

// Rows [first, last): neighbours of one sequence go together, padding is passed over.
void run_block(const ops::AttentionArgs& args, const Dims& dims, std::int64_t first,
               std::int64_t last, std::int64_t kv_head) {
    while (first < last) {
        const std::int32_t sequence = int_at(args.row_seq, first);
        std::int64_t end = first + 1;
        while (end < last && int_at(args.row_seq, end) == sequence)
            ++end;
        if (sequence >= 0)
            run_sequence(args, dims, {first, end, kv_head});
        first = end;
    }
}

} // namespace

void attention(const ops::AttentionArgs& args, ThreadPool& pool) {
    const std::int64_t hq = args.q.shape[1];
    const std::int64_t hkv = args.k_cache.shape[2];
    const Dims dims{hq, hkv, args.q.shape[2], hq / hkv};
    const std::int64_t live = live_rows(args.n_live, args.q.rows());
    const std::int64_t blocks = (live + kBlockRows - 1) / kBlockRows;
    pool.parallel_for(blocks * hkv, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t task = begin; task < end; ++task) {
            const std::int64_t first = task / hkv * kBlockRows;
            run_block(args, dims, first, std::min(live, first + kBlockRows), task % hkv);
        }
    });
    for (std::int64_t row = 0; row < live; ++row)
        if (int_at(args.row_seq, row) < 0)
            zero_rows(args.o.slice_rows(row, 1), 0);
    zero_rows(args.o, live);
}

} // namespace lr::cpu
