// SPDX-License-Identifier: Apache-2.0
//
// model/quantize.h: a quantised copy of a plain checkpoint (model/quantize_scheme.h says of which
// kinds).
//
// Streamed: memory holds the output of two batches of matrices, not files. The bytes written depend
// on input and options alone, not on threads, batches or interruptions. Weights are quantised from
// the values of the file. Activation scales come from ranges that the caller has measured; all
// matrices of an entry (fused ones, the experts of a layer) share theirs.
#pragma once

#include "core/thread_pool.h"
#include "model/quantize_error.h"
#include "model/quantize_plan.h"
#include "model/quantize_scheme.h"

#include <cstdint>
#include <string>
#include <vector>

namespace lr::model {

struct QuantizeOptions {
    QuantizeScheme scheme;
    InputRanges ranges = {}; // of every quantised entry, if the scheme is calibrated
    std::int64_t max_shard_bytes = 5'000'000'000;
    std::int64_t batch_elements = std::int64_t{1} << 26; // quantised at a time, or one job
};

struct QuantizeReport {
    // One weight of the tensor table: all its sources and experts together.
    struct Module {
        std::string name,
            kind; // kind: "attention", "gdn", "ffn", "shared expert", "routed experts"
        WeightFormat format = WeightFormat::kPlain;
        QuantizeError error;
    };
    struct Kind {
        std::string name;
        WeightFormat format = WeightFormat::kPlain;
        QuantizeError error;
        std::string worst; // the module with the largest relative RMS error
    };
    std::vector<Module> modules;                         // quantised ones, in table order
    std::vector<Kind> kinds;                             // in order of their first module
    std::int64_t tensors = 0, files = 0, kept_files = 0; // kept: complete before this run
    std::int64_t input_bytes = 0, bytes = 0;             // of tensor data
};

// Writes a copy of the model folder `in` into `out` (model/quantize_folder.h). Errors, beside those
// of open_model, plan_quantize and QuantizeFolder::open: kInvalidFile for a weight that is not
// finite, kResourceExhausted for a disk without room, kInternal for what the system refuses. After
// an error a run with the same arguments goes on behind the last complete file.
Result<QuantizeReport> quantize_checkpoint(const std::string& in, const std::string& out,
                                           const QuantizeOptions& options, ThreadPool& pool);

} // namespace lr::model
