// SPDX-License-Identifier: Apache-2.0
//
// model/quantize_folder.h: the folder that a quantised copy grows in.
//
// While a run is under way the folder holds `liverow-quantize.json`: what is made, from which
// files, and which weight files are complete, with their errors. A run that finds one of the same
// kind goes on behind the complete files. Weight files and index come first and config.json last,
// so that nothing opens as a model before all of it is there; then the note is removed.
#pragma once

#include "core/json.h"
#include "model/quantize_error.h"
#include "model/quantize_plan.h"

#include <cstdint>
#include <map>
#include <string>

namespace lr::model {

class QuantizeFolder {
  public:
    // Errors by entry of the plan's model.
    using Errors = std::map<std::int32_t, QuantizeError>;

    // Makes `path` or goes on in it. kInvalidArgument: it is the input folder, a file, holds
    // something that is no unfinished run, or a run of other options, another liverow or a changed
    // input, or another process writes it. kInternal when the system refuses.
    // `opened` and `plan` must outlive the result.
    static Result<QuantizeFolder> open(const std::string& path, const OpenModel& opened,
                                       const QuantizePlan& plan, std::int64_t max_shard_bytes);
    QuantizeFolder(QuantizeFolder&& other) noexcept;
    QuantizeFolder& operator=(QuantizeFolder&&) = delete;
    ~QuantizeFolder();

    std::string file(std::string_view name) const { return path_ + "/" + std::string(name); }
    // The errors of a weight file that is complete; nullptr otherwise.
    const Errors* complete(const std::string& shard) const;
    // The file has its own name now and is on the disk.
    Status record(const std::string& shard, Errors errors);

    // When every weight file is complete: index, everything else of the input folder but weights,
    // configs; then the note goes.
    Status finish();

  private:
    QuantizeFolder(std::string path, const OpenModel& opened, const QuantizePlan& plan)
        : path_(std::move(path)), opened_(opened), plan_(plan) {}
    Status prepare();
    Status lock();
    Status read_note(const Json& note);
    Status write_note() const;
    Status copy_others() const;
    Status write_configs() const;

    std::string path_;
    const OpenModel& opened_;
    const QuantizePlan& plan_;
    Json made_; // what the note says of this run's kind
    std::map<std::string, Errors> complete_;
    int lock_ = -1;
};

} // namespace lr::model
