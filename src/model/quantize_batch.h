// SPDX-License-Identifier: Apache-2.0
//
// model/quantize_batch.h: a run of jobs of a plan, quantised in memory by all threads.
//
// Codes, scales and dequantised values are those of numerics/quantize.h applied to each whole
// matrix; FP8 blocks have BF16 scales. Results and errors do not depend on the number of threads
// or on how jobs are cut into batches.
#pragma once

#include "checkpoint/safetensors_writer.h"
#include "core/function_ref.h"
#include "core/thread_pool.h"
#include "model/quantize_error.h"
#include "model/quantize_plan.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace lr::model {

class QuantizeBatch {
  public:
    // Both must outlive the batch. Memory: the output of the quantised jobs.
    QuantizeBatch(const QuantizePlan& plan, std::span<const QuantizeJob> jobs);
    ~QuantizeBatch();
    QuantizeBatch(const QuantizeBatch&) = delete;
    QuantizeBatch& operator=(const QuantizeBatch&) = delete;

    // kInvalidFile names the first element that is not finite.
    Status run(ThreadPool& pool);
    // The tensors of all jobs, in order. Calls wrote(bytes) now and then.
    Status write(checkpoint::SafetensorsWriter& writer,
                 FunctionRef<void(std::int64_t)> wrote) const;

    // One for each quantised job, in order.
    struct Error {
        std::int32_t entry;
        QuantizeError error;
    };
    const std::vector<Error>& errors() const { return errors_; }

  private:
    struct Matrix;
    struct Band;
    void cut_into_bands();
    void look(Band& band);
    Status check_finite() const;
    void set_globals();
    void set_inputs();
    void quantise(Band& band);

    const QuantizePlan& plan_;
    std::span<const QuantizeJob> jobs_;
    std::vector<Matrix> matrices_;
    std::vector<Band> bands_;
    std::unordered_map<std::string_view, const std::vector<std::byte>*> outputs_; // by tensor
    std::vector<Error> errors_;
};

} // namespace lr::model
