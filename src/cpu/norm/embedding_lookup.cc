// SPDX-License-Identifier: Apache-2.0
#include "core/thread_pool.h"
#include "cpu/norm/norm.h"
#include "cpu/rows.h"

namespace lr::cpu {
namespace {

// Loads row `id` of a stack of parts.
void load_table_row(const ops::Weight& table, std::int64_t id, float* out) {
    LR_CHECK_GE(id, 0);
    LR_CHECK_LT(id, table.rows());
    std::int64_t row = id;
    for (const ops::WeightPart& part : table.parts) {
        if (row < part.data.rows()) {
            load_floats(part.data, row, 0, table.columns(), out);
            return;
        }
        row -= part.data.rows();
    }
    LR_CHECK(table.bound());
}

// An id of the vocabulary that another rank's table holds.
bool elsewhere(const ops::EmbeddingLookupArgs& args, std::int64_t id) {
    const std::int64_t local = id - args.first_row;
    return id >= 0 && id < args.vocabulary && (local < 0 || local >= args.table.rows());
}

} // namespace

void embedding_lookup(const ops::EmbeddingLookupArgs& args, ThreadPool& pool) {
    const std::int64_t d = args.table.columns();
    const std::int64_t live = live_rows(args.n_live, args.ids.rows());
    pool.parallel_for(live, 16, [&](std::int64_t begin, std::int64_t end) {
        float* row = thread_scratch(0, d);
        for (std::int64_t i = begin; i < end; ++i) {
            const std::int32_t id = int_at(args.ids, i);
            if (id == -1 || elsewhere(args, id)) {
                zero_rows(args.y.slice_rows(i, 1), 0);
                continue;
            }
            load_table_row(args.table, id - args.first_row, row);
            store_floats(args.y, i, 0, d, row);
        }
    });
    zero_rows(args.y, live);
}

} // namespace lr::cpu
