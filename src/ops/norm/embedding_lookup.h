// SPDX-License-Identifier: Apache-2.0
//
// ops/norm/embedding_lookup.h: the prologue of a step: token ids become rows.
//
// Math      y[i] = table[ids[i]], no scaling
// Shapes    ids [n]   n_live [1]   table [V,D]   y [n,D]
// Types     ids, n_live i32; table plain bf16, f16 or f32; y bf16 or f32
// Rounding  none where y's type holds the table's values; else one, when y is stored
// Order     no sums
// Aliasing  nothing may overlap
// Bounds    id -1 gives a zero row (a row whose request failed); so does an id of another
//           rank's share; any other id outside the vocabulary is a caller bug; rows >= n_live are
//           zero and their ids are not read
// Graph     capture-safe: no sync, allocation or host read; n, shapes and pointers are baked, ids
//           are not
// Scratch   none
// Cost      reads n rows of the table and n ids, writes n*D; no FLOPs
#pragma once

#include "ops/op.h"
#include "ops/weight.h"

namespace lr::ops {

struct EmbeddingLookupArgs {
    ConstView ids;         // [n]
    ConstView n_live = {}; // [1]
    Weight table;          // [V,D]
    View y;                // [n,D]
    // A rank's share: the table holds ids [first_row, first_row + V) of `vocabulary` in all (0: of
    // V).
    std::int64_t first_row = 0;
    std::int64_t vocabulary = 0;

    template <typename Visitor> void visit(Visitor& v) {
        v.in("ids", ids);
        v.in("n_live", n_live);
        v.weight("table", table);
        v.out("y", y);
    }
};

Status check(const EmbeddingLookupArgs& args);
Cost cost(const EmbeddingLookupArgs& args);

} // namespace lr::ops
