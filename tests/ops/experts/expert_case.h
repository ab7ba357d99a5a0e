// SPDX-License-Identifier: Apache-2.0
//
// tests/ops/experts/expert_case.h: endpoints, a row map and the rows that lie outside, for tests of
// the expert products.
#pragma once

#include "experts/endpoints.h"
#include "tests/ops/gemm/product_case.h"

#include <vector>

namespace lr::ops {

// Experts with these counts, rows aligned to `align`, some rows of capacity behind the last; row r
// of an expert belongs to token (7*r + 3*e) % tokens. Everything outside is poison.
struct RowsCase {
    std::vector<std::int32_t> counts;
    std::int64_t rows;
    GuardedTensor start, end, row_map;

    RowsCase(std::vector<std::int32_t> counts_in, std::int32_t align, std::int64_t tokens,
             std::int32_t per_token)
        : counts(std::move(counts_in)), rows(capacity(align)), start(DType::kI32, {local()}),
          end(DType::kI32, {local()}), row_map(DType::kI32, {rows}) {
        for (std::int64_t r = 0; r < rows; ++r)
            row_map.set(r, 0x7FFFFFFF);
        experts::scan_endpoints(counts.data(), static_cast<std::int32_t>(local()), align,
                                start.view().as<std::int32_t>(), end.view().as<std::int32_t>());
        for (std::int64_t e = 0; e < local(); ++e)
            for (std::int64_t r = first(e); r < last(e); ++r)
                row_map.set(
                    r, static_cast<double>((7 * r + 3 * e) % tokens * per_token + r % per_token));
    }

    std::int64_t local() const { return static_cast<std::int64_t>(counts.size()); }
    std::int64_t first(std::int64_t e) { return static_cast<std::int64_t>(start.at(e)); }
    std::int64_t last(std::int64_t e) { return static_cast<std::int64_t>(end.at(e)); }
    bool live(std::int64_t r) {
        for (std::int64_t e = 0; e < local(); ++e)
            if (r >= first(e) && r < last(e))
                return true;
        return false;
    }

  private:
    std::int64_t capacity(std::int32_t align) const {
        std::int64_t sum = 0;
        for (std::int32_t count : counts)
            sum += experts::align_up(count, align);
        return sum + 3;
    }
};

} // namespace lr::ops
