// SPDX-License-Identifier: Apache-2.0
//
// model/quantize_plan.h: the tensors that a quantised copy of a checkpoint holds, where each comes
// from, and the file it goes to.
#pragma once

#include "model/open.h"
#include "model/quantize_config.h"
#include "model/quantize_scheme.h"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace lr::model {

// A matrix of the input: rows * columns elements of `source`, dense, from element `first` on (an
// expert of a stack starts inside it).
struct QuantizeMatrix {
    const checkpoint::TensorInfo* source = nullptr;
    std::int64_t first = 0, rows = 0, columns = 0;
    std::vector<StoredSpec> out; // in file order

    std::int64_t elements() const { return rows * columns; }
};

// What is written in one go: a tensor as it is, or matrices that engines fuse (q, k and v; gate and
// up of one expert). A fused weight has one global factor in most engines, so these share it: the
// factor is that of their largest magnitude.
struct QuantizeJob {
    const checkpoint::TensorInfo* copied = nullptr;
    std::int32_t entry = -1; // index into model.entries(); -1: copied
    std::vector<QuantizeMatrix> matrices;

    std::int64_t elements() const;
    std::vector<checkpoint::TensorSpec> specs() const; // in file order
};

struct QuantizeShard {
    checkpoint::ShardPlan file;
    std::size_t first_job = 0, jobs = 0;
    std::int64_t bytes() const; // of tensor data
};

// Largest |x| of the activations that meet a weight, by the name of its entry.
using InputRanges = std::map<std::string, float, std::less<>>;

struct QuantizePlan {
    QuantizeScheme scheme;
    Model model; // the copy's: formats and, where calibrated, input scales as they will be
    ModuleNames names;
    std::vector<QuantizeJob> jobs;     // in file order: F32 copies first, then as the table lists
    std::vector<QuantizeShard> shards; // the same, cut into files

    std::int64_t bytes() const;
};

// kInvalidFile when a weight of `opened` is quantised already; kInvalidArgument for experts of a
// model without any, or a calibrated scheme without the range of a quantised entry; kUnsupported
// for NVFP4 rows that are no whole blocks of 16, or a tensor of a dtype that cannot be copied.
// `ranges` are read if the scheme is calibrated. `opened` must outlive the plan.
Result<QuantizePlan> plan_quantize(const OpenModel& opened, const QuantizeScheme& scheme,
                                   std::int64_t max_shard_bytes, const InputRanges& ranges = {});

} // namespace lr::model
