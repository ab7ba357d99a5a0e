// SPDX-License-Identifier: Apache-2.0
//
// checkpoint/safetensors.h: one safetensors file, mapped, with its header checked to the letter.
//
// Layout: u64 little-endian header length, the header (a JSON object, padded with spaces), the data
// buffer. Every member but "__metadata__" is a tensor: {"dtype", "shape", "data_offsets": [begin,
// end]} with offsets from the start of the buffer.
//
// open() touches the header alone, and refuses (kInvalidFile, with path and tensor):
//   a file shorter than its header says, a header of 0 or more than 100,000,000 bytes, anything but
//   strict JSON, a duplicate key, invalid UTF-8, an unknown or missing field, an unknown dtype, a
//   negative dim, a product of dims beyond 2^63, offsets that are out of order, outside the file,
//   overlapping, or that leave a hole or a tail, and a byte count that is not shape x dtype.
// More than five dims is kUnsupported. Empty tensors (a dim of 0) and scalars (no dims) are fine.
//
// Data is read in place; a file whose tensor does not lie at a multiple of its element size is
// valid, and its readers must copy (aligned() says so).
#pragma once

#include "checkpoint/mapped_file.h"
#include "core/dtype.h"
#include "core/shape.h"
#include "core/status.h"
#include "core/view.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lr::checkpoint {

inline constexpr std::int64_t kMaxHeaderBytes = 100'000'000;

// One tensor of an open file. Valid as long as the file's object lives; it may be moved.
struct TensorInfo {
    std::string_view name;
    std::string_view file_dtype; // as the file spells it: "BF16"
    std::optional<DType> dtype;  // nothing for F64, BOOL and others that nothing here computes on
    Shape shape;
    const std::byte* data = nullptr;
    std::int64_t bytes = 0;

    // The tensor as a dense view; kUnsupported when dtype is nothing.
    Result<ConstView> view() const;
    // data is at a multiple of the element size.
    bool aligned() const;
    // "BF16 [4, 128]", for messages and tables.
    std::string describe() const;
};

class SafetensorsFile {
  public:
    static Result<SafetensorsFile> open(const std::string& path);

    const std::string& path() const { return file_.path(); }
    std::int64_t file_bytes() const { return file_.size(); }
    const std::vector<TensorInfo>& tensors() const { return tensors_; } // sorted by name
    const TensorInfo* find(std::string_view name) const;                // nullptr when absent
    // The "__metadata__" strings, in the order of the file.
    const std::vector<std::pair<std::string, std::string>>& metadata() const { return metadata_; }
    Status still_intact() const { return file_.still_intact(); }

  private:
    explicit SafetensorsFile(MappedFile file) : file_(std::move(file)) {}

    MappedFile file_;
    std::vector<char> names_; // all names one after another, for TensorInfo::name
    std::vector<TensorInfo> tensors_;
    std::vector<std::pair<std::string, std::string>> metadata_;
};

} // namespace lr::checkpoint
