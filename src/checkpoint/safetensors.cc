// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/safetensors.h"

#include "checkpoint/file_dtype.h"
#include "core/json.h"

#include <algorithm>

namespace lr::checkpoint {
namespace {

constexpr std::int64_t kLengthBytes = 8;
constexpr std::string_view kMetadataKey = "__metadata__";

// A tensor as the header gives it, before its offsets are known to be sound.
struct Entry {
    const std::string* name;
    const FileDType* dtype;
    Shape shape;
    std::int64_t begin;
    std::int64_t end;
};

Result<std::string_view> header_text(const MappedFile& file) {
    const auto bytes = file.bytes();
    if (file.size() < kLengthBytes)
        return fail(Code::kInvalidFile,
                    "safetensors {}: expected a header length of 8 bytes, got a file of {} bytes",
                    file.path(), file.size());
    std::uint64_t length = 0;
    for (std::size_t i = 0; i < kLengthBytes; ++i)
        length |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
    if (length == 0 || length > static_cast<std::uint64_t>(kMaxHeaderBytes))
        return fail(Code::kInvalidFile,
                    "safetensors {}: expected a header of 1 to {} bytes, got a length of {}; this "
                    "is not a safetensors file",
                    file.path(), kMaxHeaderBytes, length);
    if (length > static_cast<std::uint64_t>(file.size() - kLengthBytes))
        return fail(
            Code::kInvalidFile,
            "safetensors {}: expected a header of {} bytes, but the file has only {} bytes; "
            "it is cut short",
            file.path(), length, file.size());
    const char* text = reinterpret_cast<const char*>(bytes.data()) + kLengthBytes;
    if (text[0] != '{')
        return fail(Code::kInvalidFile,
                    "safetensors {}: expected a header that starts with '{{', got byte 0x{:02x}",
                    file.path(), static_cast<unsigned char>(text[0]));
    return std::string_view(text, static_cast<std::size_t>(length));
}

Status check_name(const JsonCursor& header, std::string_view name) {
    const bool control = std::any_of(name.begin(), name.end(), [](char c) {
        return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
    });
    if (name.empty() || control)
        return header.fail_here(
            Code::kInvalidFile,
            fmt::format("tensor {}: expected a name without control characters, not empty",
                        json_quote(name)));
    return {};
}

Result<Shape> read_shape(const JsonCursor& tensor) {
    LR_TRY_ASSIGN(const JsonCursor field, tensor.required_array("shape"));
    LR_TRY_ASSIGN(const std::vector<JsonCursor> dims, field.read_array());
    if (dims.size() > Shape::kMaxRank)
        return field.fail_here(Code::kUnsupported, fmt::format("expected at most {} dims, got {}",
                                                               Shape::kMaxRank, dims.size()));
    Shape shape;
    for (const JsonCursor& dim : dims) {
        LR_TRY_ASSIGN(const std::int64_t size, dim.read_int(0));
        shape.push_back(size);
    }
    return shape;
}

// Bytes of a dense tensor. A dim of 0 counts as 1 for the overflow check, because strides are
// products of some of the dims.
Result<std::int64_t> shape_bytes(const JsonCursor& tensor, const Shape& shape, int bits) {
    std::int64_t product = bits;
    bool empty = false;
    for (std::int64_t dim : shape) {
        empty = empty || dim == 0;
        if (__builtin_mul_overflow(product, std::max<std::int64_t>(dim, 1), &product))
            return tensor.fail_here(
                Code::kInvalidFile,
                fmt::format("shape {} has more elements than 2^63 bits", shape.to_string()));
    }
    if (empty)
        return 0;
    if (product % 8 != 0)
        return tensor.fail_here(
            Code::kInvalidFile,
            fmt::format("shape {} of {}-bit elements is not a whole number of bytes",
                        shape.to_string(), bits));
    return product / 8;
}

Result<Entry> read_entry(const JsonCursor& tensor, const std::string& name) {
    LR_TRY(tensor.expect_object());
    LR_TRY(tensor.expect_keys({"dtype", "shape", "data_offsets"}));
    LR_TRY_ASSIGN(const std::string dtype_text, tensor.required_string("dtype"));
    const FileDType* dtype = find_file_dtype(dtype_text);
    if (dtype == nullptr)
        return tensor.member("dtype").fail_expected("a dtype such as BF16, F32 or F8_E4M3");
    LR_TRY_ASSIGN(const Shape shape, read_shape(tensor));
    LR_TRY_ASSIGN(const std::vector<std::int64_t> offsets, tensor.required_ints("data_offsets", 0));
    if (offsets.size() != 2 || offsets[0] > offsets[1])
        return tensor.member("data_offsets").fail_expected("[begin, end] with begin <= end");
    LR_TRY_ASSIGN(const std::int64_t bytes, shape_bytes(tensor, shape, dtype->bits));
    if (offsets[1] - offsets[0] != bytes)
        return tensor.fail_here(Code::kInvalidFile,
                                fmt::format("expected {} bytes for {} {}, got {} (data_offsets {}, "
                                            "{})",
                                            bytes, dtype->name, shape.to_string(),
                                            offsets[1] - offsets[0], offsets[0], offsets[1]));
    return Entry{&name, dtype, shape, offsets[0], offsets[1]};
}

// The tensors, in order of their offsets, must cover the buffer exactly.
Status check_layout(const MappedFile& file, std::vector<Entry> entries, std::int64_t data_start) {
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
        return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    });
    const std::int64_t buffer = file.size() - data_start;
    std::int64_t last = 0;
    for (const Entry& entry : entries)
        last = std::max(last, entry.end);
    std::int64_t covered = 0;
    for (const Entry& entry : entries) {
        if (entry.end > buffer)
            return fail(Code::kInvalidFile,
                        "safetensors {}: tensor '{}': its data ends at {}, but the data buffer has "
                        "{} bytes; expected a file of {} bytes, got {}: it is cut short",
                        file.path(), *entry.name, entry.end, buffer,
                        static_cast<std::uint64_t>(data_start) + static_cast<std::uint64_t>(last),
                        file.size());
        if (entry.begin != covered)
            return fail(Code::kInvalidFile,
                        "safetensors {}: tensor '{}': expected its data to start at {}, got {}: {}",
                        file.path(), *entry.name, covered, entry.begin,
                        entry.begin < covered ? "it overlaps another tensor"
                                              : "the data buffer has a hole");
        covered = entry.end;
    }
    if (covered != buffer)
        return fail(Code::kInvalidFile,
                    "safetensors {}: expected a file of {} bytes, got {}: {} bytes belong to no "
                    "tensor",
                    file.path(), data_start + covered, file.size(), buffer - covered);
    return {};
}

Result<std::vector<std::pair<std::string, std::string>>> read_metadata(const JsonCursor& field) {
    LR_TRY(field.expect_object());
    std::vector<std::pair<std::string, std::string>> metadata;
    for (const JsonMember& member : field.value().as_object().members()) {
        LR_TRY_ASSIGN(std::string text, field.member(member.key).read_string());
        metadata.emplace_back(member.key, std::move(text));
    }
    return metadata;
}

} // namespace

Result<SafetensorsFile> SafetensorsFile::open(const std::string& path) {
    LR_TRY_ASSIGN(MappedFile mapped, MappedFile::open(path));
    SafetensorsFile file(std::move(mapped));
    LR_TRY_ASSIGN(const std::string_view text, header_text(file.file_));
    const std::string where = fmt::format("safetensors {}: header", path);
    LR_TRY_ASSIGN(const Json json, parse_json(text, where, {.max_depth = 8}));
    const JsonCursor header(where, json);

    std::vector<Entry> entries;
    std::size_t name_bytes = 0;
    for (const JsonMember& member : json.as_object().members()) {
        if (member.key == kMetadataKey) {
            LR_TRY_ASSIGN(file.metadata_, read_metadata(header.member(member.key)));
            continue;
        }
        LR_TRY(check_name(header, member.key));
        LR_TRY_ASSIGN(const Entry entry, read_entry(header.member(member.key), member.key));
        entries.push_back(entry);
        name_bytes += member.key.size();
    }
    const std::int64_t data_start = kLengthBytes + static_cast<std::int64_t>(text.size());
    LR_TRY(check_layout(file.file_, entries, data_start));

    file.names_.reserve(name_bytes); // the views below stay valid
    const std::byte* data = file.file_.bytes().data() + data_start;
    for (const Entry& entry : entries) {
        const std::size_t first = file.names_.size();
        file.names_.insert(file.names_.end(), entry.name->begin(), entry.name->end());
        const std::string_view name(file.names_.data() + first, entry.name->size());
        file.tensors_.push_back({name, entry.dtype->name, entry.dtype->dtype, entry.shape,
                                 data + entry.begin, entry.end - entry.begin});
    }
    std::sort(file.tensors_.begin(), file.tensors_.end(),
              [](const TensorInfo& a, const TensorInfo& b) { return a.name < b.name; });
    return file;
}

const TensorInfo* SafetensorsFile::find(std::string_view name) const {
    const auto at = std::lower_bound(
        tensors_.begin(), tensors_.end(), name,
        [](const TensorInfo& info, std::string_view wanted) { return info.name < wanted; });
    return at != tensors_.end() && at->name == name ? &*at : nullptr;
}

Result<ConstView> TensorInfo::view() const {
    if (!dtype)
        return fail(Code::kUnsupported,
                    "tensor '{}': dtype {} can be stored but not computed on; expected F32, BF16, "
                    "F16, F8_E4M3, F8_E8M0, F4, U8, I32 or I64",
                    name, file_dtype);
    return ConstView(data, *dtype, shape);
}

bool TensorInfo::aligned() const {
    const FileDType* row = find_file_dtype(file_dtype);
    const auto size = static_cast<std::uintptr_t>(std::max(1, row->bits / 8));
    return reinterpret_cast<std::uintptr_t>(data) % size == 0;
}

std::string TensorInfo::describe() const {
    return fmt::format("{} {}", file_dtype, shape.to_string());
}

} // namespace lr::checkpoint
