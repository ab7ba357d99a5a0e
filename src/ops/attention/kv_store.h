// SPDX-License-Identifier: Apache-2.0
//
// ops/attention/kv_store.h: writes each row's key and value into its place in the paged cache.
//
// Math      slot = kv_slot[i] = page * 64 + offset:  k_cache[page, offset] = k[i], v alike
// Shapes    k, v [n,Hkv,dh]   kv_slot [n]   n_live [1]   k_cache, v_cache [P,64,Hkv,dh];
//           rows of k and v may be strided
// Types     k, v, k_cache, v_cache bf16 or f32; kv_slot i64; n_live i32
// Rounding  one when the cache is narrower than the input, else none
// Order     no sums
// Aliasing  caches updated in place; nothing may overlap
// Bounds    kv_slot -1 or row >= n_live: nothing read, nothing written; another kv_slot outside
//           [0,64P), or one slot for two rows, is a caller bug
// Graph     capture-safe: no sync, allocation or host read; kv_slot is data
// Scratch   none
// Cost      reads k, v and kv_slot, writes 2*n*Hkv*dh elements of the caches; no FLOPs
#pragma once

#include "ops/op.h"

namespace lr::ops {

struct KvStoreArgs {
    ConstView k;           // [n,Hkv,dh]
    ConstView v;           // [n,Hkv,dh]
    ConstView kv_slot;     // [n] i64
    ConstView n_live = {}; // [1]
    View k_cache;          // [P,64,Hkv,dh]
    View v_cache;          // [P,64,Hkv,dh]

    template <typename Visitor> void visit(Visitor& visitor) {
        visitor.in("k", k);
        visitor.in("v", v);
        visitor.in("kv_slot", kv_slot);
        visitor.in("n_live", n_live);
        visitor.state("k_cache", k_cache);
        visitor.state("v_cache", v_cache);
    }
};

Status check(const KvStoreArgs& args);
Cost cost(const KvStoreArgs& args);

} // namespace lr::ops
