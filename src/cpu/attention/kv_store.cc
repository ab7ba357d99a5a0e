// SPDX-License-Identifier: Apache-2.0
#include "core/thread_pool.h"
#include "cpu/attention/attention.h"
#include "cpu/rows.h"

namespace lr::cpu {

void kv_store(const ops::KvStoreArgs& args, ThreadPool& pool) {
    const std::int64_t width = args.k.shape.row_count();
    const std::int64_t live = live_rows(args.n_live, args.k.rows());
    const std::int64_t slots = args.k_cache.rows() * ops::kKvPage;
    pool.parallel_for(live, 16, [&](std::int64_t begin, std::int64_t end) {
        float* token = thread_scratch(0, width);
        for (std::int64_t i = begin; i < end; ++i) {
            const std::int64_t slot = args.kv_slot.as<std::int64_t>()[i];
            if (slot == -1)
                continue;
            LR_CHECK_GE(slot, 0);
            LR_CHECK_LT(slot, slots);
            const std::int64_t page = slot / ops::kKvPage;
            const std::int64_t first = slot % ops::kKvPage * width;
            load_floats(args.k, i, 0, width, token);
            store_floats(args.k_cache, page, first, width, token);
            load_floats(args.v, i, 0, width, token);
            store_floats(args.v_cache, page, first, width, token);
        }
    });
}

} // namespace lr::cpu
