// SPDX-License-Identifier: Apache-2.0
//
// checkpoint/checkpoint.h: all tensors of a model, from one safetensors file or from a folder.
//
// A folder holds either model.safetensors.index.json and the shards that its weight_map names, or
// model.safetensors. Index and shards must agree exactly; each of these is an error that names the
// file and the tensor: a missing shard (all of them are listed), a shard name that is not a plain
// file name, a tensor of the index that its shard lacks, a tensor of a shard that the index lacks
// or places elsewhere, a tensor in two shards, and a further "model*.safetensors" in the folder (it
// is a leftover of another download, and loading around it would hide that). Other files are
// ignored.
//
// Opening maps the files and reads their headers; no tensor data is touched.
#pragma once

#include "checkpoint/safetensors.h"
#include "core/status.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lr::checkpoint {

class Checkpoint {
  public:
    // `path` is a folder or a .safetensors file.
    static Result<Checkpoint> open(const std::string& path);

    const std::string& path() const { return path_; }
    const std::vector<SafetensorsFile>& files() const { return files_; }
    const std::vector<TensorInfo>& tensors() const { return tensors_; } // sorted by name
    const TensorInfo* find(std::string_view name) const;                // nullptr when absent
    // find, or kNotFound with the name and the checkpoint.
    Result<TensorInfo> require(std::string_view name) const;
    std::int64_t total_bytes() const { return total_bytes_; } // of tensor data

    // No file changed since open: call before and after reading data (mapped_file.h).
    Status still_intact() const;

  private:
    Checkpoint() = default;
    static Result<Checkpoint> open_sharded(const std::string& folder);
    void collect();

    std::string path_;
    std::vector<SafetensorsFile> files_;
    std::vector<TensorInfo> tensors_;
    std::int64_t total_bytes_ = 0;
};

} // namespace lr::checkpoint
