// SPDX-License-Identifier: Apache-2.0
//
// engine/weights.h: a rank's weights as ops see them: views into the mapped files, nothing copied
// but the few tensors that a file stores misaligned, and those that it quantises although the step
// reads them as one dense view (model/resolve.h), which are widened to F32.
#pragma once

#include "checkpoint/quant_values.h"
#include "core/buffer.h"
#include "core/thread_pool.h"
#include "model/open.h"
#include "ops/weight.h"

#include <span>
#include <vector>

namespace lr::engine {

class Weights {
  public:
    // `opened` must outlive the result.
    static Result<Weights> bind(const model::OpenModel& opened, const model::Shard& shard);

    // By index into Model::entries().
    std::span<const ops::WeightPart> parts(std::int32_t entry) const {
        return parts_[static_cast<std::size_t>(entry)];
    }
    // Base address of an entry that ops take as one dense view (norms, A_log, dt_bias, gates).
    const std::byte* data(std::int32_t entry) const {
        return parts_[static_cast<std::size_t>(entry)].front().data.data;
    }
    std::int64_t bytes() const { return bytes_; } // of this rank, scales included

  private:
    friend class WeightBinder;
    std::vector<std::vector<ops::WeightPart>> parts_;
    std::vector<Buffer> copies_;
    std::int64_t bytes_ = 0;
};

// Reads every scale of the model, on all threads: they make sense (checkpoint/quant_values.h), or
// the first that does not is the error.
Result<checkpoint::ScaleCounts> check_scales(const model::OpenModel& opened, ThreadPool& pool);

} // namespace lr::engine
