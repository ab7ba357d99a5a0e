// SPDX-License-Identifier: Apache-2.0
//
// cpu/attention/attention.h: CPU functions of ops/attention. Each runs the contract in its op's
// header; arguments have passed that op's check.
#pragma once

#include "ops/attention/attention.h"
#include "ops/attention/kv_store.h"
#include "ops/attention/qk_norm_rope_gate.h"
#include "ops/attention/sigmoid_gate.h"

namespace lr {
class ThreadPool;
}

namespace lr::cpu {

void qk_norm_rope_gate(const ops::QkNormRopeGateArgs& args, ThreadPool& pool);
void kv_store(const ops::KvStoreArgs& args, ThreadPool& pool);
void attention(const ops::AttentionArgs& args, ThreadPool& pool);
void sigmoid_gate(const ops::SigmoidGateArgs& args, ThreadPool& pool);

} // namespace lr::cpu
