// SPDX-License-Identifier: Apache-2.0
//
// checkpoint/safetensors_writer.h: writes safetensors files as a stream. Tensors are declared first
// (the header needs their sizes); their bytes follow in the declared order, in chunks of any size.
//
// A file appears under its name in finish() (checkpoint/atomic_file.h). The header is padded so
// that the data buffer starts at a multiple of 8. Writing bytes of another tensor than the next
// one, too many of them, or finishing early, is a caller's mistake (checked). Errors of the system
// are kInternal with the path.
#pragma once

#include "core/dtype.h"
#include "core/shape.h"
#include "core/status.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lr::checkpoint {

struct TensorSpec {
    std::string name;
    DType dtype;
    Shape shape;

    std::int64_t bytes() const { return dtype_bytes(dtype, shape.count()); }
};

using Metadata = std::vector<std::pair<std::string, std::string>>;

// Orders by element size, largest first, keeping the order among equals: every tensor of a file
// written in this order is aligned to its element size.
void sort_for_alignment(std::vector<TensorSpec>& specs);

class SafetensorsWriter {
  public:
    // kInvalidArgument for a name that occurs twice, is empty or is "__metadata__".
    static Result<SafetensorsWriter> create(const std::string& path, std::vector<TensorSpec> specs,
                                            const Metadata& metadata = {});
    SafetensorsWriter(SafetensorsWriter&&) noexcept;
    SafetensorsWriter& operator=(SafetensorsWriter&&) noexcept;
    ~SafetensorsWriter();

    // The next bytes of `tensor`.
    Status append(std::string_view tensor, std::span<const std::byte> chunk);
    // All bytes are there: flush (to the disk as well when sync), rename.
    Status finish(bool sync = false);

  private:
    struct Output;
    explicit SafetensorsWriter(std::unique_ptr<Output> output);
    std::unique_ptr<Output> output_;
};

// One file of a checkpoint.
struct ShardPlan {
    std::string name; // "model-00001-of-00002.safetensors"
    std::vector<TensorSpec> specs;
};
// Groups of tensors in files, in order: a group stays together, and a file holds at most
// `max_shard_bytes` unless one group is larger. A single file is "model.safetensors".
std::vector<ShardPlan> plan_shards(std::vector<std::vector<TensorSpec>> groups,
                                   std::int64_t max_shard_bytes);
// Writes model.safetensors.index.json; nothing for a single file, which needs none.
Status write_index(const std::string& folder, const std::vector<ShardPlan>& shards, bool sync);

// A folder: model.safetensors, or model-00001-of-0000N.safetensors and model.safetensors.index.json
// when the tensors take more than `max_shard_bytes` (a larger tensor gets a shard of its own). The
// index is written last.
class ShardedWriter {
  public:
    struct Options {
        std::int64_t max_shard_bytes = 5'000'000'000;
        bool sync = false;      // flush every file to the disk before it takes its name
        Metadata metadata = {}; // of every shard
    };
    static Result<ShardedWriter> create(const std::string& folder, std::vector<TensorSpec> specs,
                                        Options options);

    // File names in order; one entry when there is no index.
    const std::vector<std::string>& shard_names() const { return shard_names_; }

    // As SafetensorsWriter; tensors come in the declared order across all shards.
    Status append(std::string_view tensor, std::span<const std::byte> chunk);
    Status finish();

  private:
    ShardedWriter() = default;
    Status open_shard(std::size_t shard);

    std::string folder_;
    Options options_;
    std::vector<ShardPlan> shards_;
    std::vector<std::string> shard_names_;
    std::size_t shard_ = 0;      // the one being written
    std::int64_t remaining_ = 0; // bytes it still lacks
    std::optional<SafetensorsWriter> writer_;
};

} // namespace lr::checkpoint
