// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/safetensors_writer.h"

#include "checkpoint/file_dtype.h"
#include "core/json.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>

namespace lr::checkpoint {
namespace {

Failure system_failure(const std::string& path, std::string_view what) {
    return fail(Code::kInternal, "{}: cannot {}: {}", path, what, std::strerror(errno));
}

// A file that appears under its name only when it is complete.
class AtomicFile {
  public:
    static Result<AtomicFile> create(const std::string& path) {
        const std::string partial = path + ".partial";
        const int fd = ::open(partial.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        if (fd < 0)
            return system_failure(path, "create the file");
        return AtomicFile(path, fd);
    }
    AtomicFile(AtomicFile&& other) noexcept
        : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}
    AtomicFile& operator=(AtomicFile&&) = delete;
    ~AtomicFile() {
        if (fd_ < 0)
            return;
        ::close(fd_);
        ::unlink(partial().c_str());
    }

    Status write(const void* data, std::size_t size) {
        const char* next = static_cast<const char*>(data);
        while (size > 0) {
            const ssize_t written = ::write(fd_, next, size);
            if (written < 0 && errno == EINTR)
                continue;
            if (written < 0)
                return system_failure(path_, "write to the file");
            next += written;
            size -= static_cast<std::size_t>(written);
        }
        return {};
    }

    Status finish(bool sync) {
        if (sync && ::fsync(fd_) != 0)
            return system_failure(path_, "flush the file to the disk");
        if (::close(std::exchange(fd_, -1)) != 0 ||
            ::rename(partial().c_str(), path_.c_str()) != 0) {
            const Failure failure = system_failure(path_, "complete the file");
            ::unlink(partial().c_str());
            return Status(failure.value());
        }
        return {};
    }

  private:
    AtomicFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
    std::string partial() const { return path_ + ".partial"; }

    std::string path_;
    int fd_;
};

Status check_names(const std::string& path, const std::vector<TensorSpec>& specs) {
    std::vector<std::string_view> names;
    for (const TensorSpec& spec : specs)
        names.push_back(spec.name);
    std::sort(names.begin(), names.end());
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (names[i].empty() || names[i] == "__metadata__")
            return fail(Code::kInvalidArgument, "{}: expected a tensor name, got \"{}\"", path,
                        names[i]);
        if (i > 0 && names[i] == names[i - 1])
            return fail(Code::kInvalidArgument, "{}: tensor '{}' is declared twice", path,
                        names[i]);
    }
    return {};
}

std::string header_text(const std::vector<TensorSpec>& specs, const Metadata& metadata) {
    std::string text = "{";
    if (!metadata.empty()) {
        text += "\"__metadata__\":{";
        for (std::size_t i = 0; i < metadata.size(); ++i)
            text += fmt::format("{}{}:{}", i > 0 ? "," : "", json_quote(metadata[i].first),
                                json_quote(metadata[i].second));
        text += "}";
    }
    std::int64_t begin = 0;
    for (const TensorSpec& spec : specs) {
        std::string dims;
        for (std::int64_t dim : spec.shape)
            dims += fmt::format("{}{}", dims.empty() ? "" : ",", dim);
        const std::int64_t end = begin + spec.bytes();
        text += fmt::format(R"({}{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                            text.size() > 1 ? "," : "", json_quote(spec.name),
                            file_dtype_name(spec.dtype), dims, begin, end);
        begin = end;
    }
    text += "}";
    text.append((8 - text.size() % 8) % 8, ' ');
    return text;
}

} // namespace

void sort_for_alignment(std::vector<TensorSpec>& specs) {
    std::stable_sort(specs.begin(), specs.end(), [](const TensorSpec& a, const TensorSpec& b) {
        return dtype_bits(a.dtype) > dtype_bits(b.dtype);
    });
}

struct SafetensorsWriter::Output {
    AtomicFile file;
    std::vector<TensorSpec> specs;
    std::size_t current = 0;
    std::int64_t written = 0; // bytes of the current tensor

    // Moves over what is complete, empty tensors included.
    void advance() {
        while (current < specs.size() && written == specs[current].bytes()) {
            ++current;
            written = 0;
        }
    }
};

SafetensorsWriter::SafetensorsWriter(std::unique_ptr<Output> output) : output_(std::move(output)) {}
SafetensorsWriter::SafetensorsWriter(SafetensorsWriter&&) noexcept = default;
SafetensorsWriter& SafetensorsWriter::operator=(SafetensorsWriter&&) noexcept = default;
SafetensorsWriter::~SafetensorsWriter() = default;

Result<SafetensorsWriter> SafetensorsWriter::create(const std::string& path,
                                                    std::vector<TensorSpec> specs,
                                                    const Metadata& metadata) {
    LR_TRY(check_names(path, specs));
    LR_TRY_ASSIGN(AtomicFile file, AtomicFile::create(path));
    const std::string header = header_text(specs, metadata);
    std::array<unsigned char, 8> length{};
    for (std::size_t i = 0; i < length.size(); ++i)
        length[i] = static_cast<unsigned char>(header.size() >> (8 * i));
    LR_TRY(file.write(length.data(), length.size()));
    LR_TRY(file.write(header.data(), header.size()));
    auto output = std::make_unique<Output>(Output{std::move(file), std::move(specs)});
    output->advance();
    return SafetensorsWriter(std::move(output));
}

Status SafetensorsWriter::append(std::string_view tensor, std::span<const std::byte> chunk) {
    if (chunk.empty())
        return {};
    Output& out = *output_;
    LR_CHECK_LT(out.current, out.specs.size());
    const TensorSpec& spec = out.specs[out.current];
    LR_CHECK_EQ(tensor, spec.name);
    LR_CHECK_LE(out.written + static_cast<std::int64_t>(chunk.size()), spec.bytes());
    LR_TRY(out.file.write(chunk.data(), chunk.size()));
    out.written += static_cast<std::int64_t>(chunk.size());
    out.advance();
    return {};
}

Status SafetensorsWriter::finish(bool sync) {
    LR_CHECK_EQ(output_->current, output_->specs.size());
    return output_->file.finish(sync);
}

Result<ShardedWriter> ShardedWriter::create(const std::string& folder,
                                            std::vector<TensorSpec> specs, Options options) {
    LR_TRY(check_names(folder, specs));
    ShardedWriter writer;
    writer.folder_ = folder;
    writer.shards_.emplace_back();
    std::int64_t shard_bytes = 0;
    for (TensorSpec& spec : specs) {
        const std::int64_t bytes = spec.bytes();
        if (!writer.shards_.back().empty() && shard_bytes + bytes > options.max_shard_bytes) {
            writer.shards_.emplace_back();
            shard_bytes = 0;
        }
        shard_bytes += bytes;
        writer.shards_.back().push_back(std::move(spec));
    }
    const std::size_t count = writer.shards_.size();
    for (std::size_t s = 0; s < count; ++s)
        writer.shard_names_.push_back(
            count == 1 ? "model.safetensors"
                       : fmt::format("model-{:05}-of-{:05}.safetensors", s + 1, count));
    writer.options_ = std::move(options);
    LR_TRY(writer.open_shard(0));
    return writer;
}

Status ShardedWriter::open_shard(std::size_t shard) {
    const std::string path = (std::filesystem::path(folder_) / shard_names_[shard]).string();
    LR_TRY_ASSIGN(SafetensorsWriter writer,
                  SafetensorsWriter::create(path, shards_[shard], options_.metadata));
    writer_.emplace(std::move(writer));
    shard_ = shard;
    remaining_ = 0;
    for (const TensorSpec& spec : shards_[shard])
        remaining_ += spec.bytes();
    return {};
}

Status ShardedWriter::append(std::string_view tensor, std::span<const std::byte> chunk) {
    if (chunk.empty())
        return {};
    while (remaining_ == 0) { // the shard is complete; the next one may hold empty tensors alone
        LR_CHECK_LT(shard_ + 1, shards_.size());
        LR_TRY(writer_->finish(options_.sync));
        LR_TRY(open_shard(shard_ + 1));
    }
    LR_TRY(writer_->append(tensor, chunk));
    remaining_ -= static_cast<std::int64_t>(chunk.size());
    return {};
}

Status ShardedWriter::finish() {
    LR_TRY(writer_->finish(options_.sync));
    while (shard_ + 1 < shards_.size()) { // shards of empty tensors alone
        LR_TRY(open_shard(shard_ + 1));
        LR_TRY(writer_->finish(options_.sync));
    }
    if (shards_.size() == 1)
        return {};
    std::int64_t total = 0;
    std::vector<JsonMember> map;
    for (std::size_t s = 0; s < shards_.size(); ++s) {
        for (const TensorSpec& spec : shards_[s]) {
            total += spec.bytes();
            map.push_back({spec.name, Json(shard_names_[s])});
        }
    }
    std::sort(map.begin(), map.end(),
              [](const JsonMember& a, const JsonMember& b) { return a.key < b.key; });
    const Json index = Json::object({{"metadata", Json::object({{"total_size", Json(total)}})},
                                     {"weight_map", Json::object(std::move(map))}});
    const std::string text = to_json_string(index, 2) + "\n";
    LR_TRY_ASSIGN(AtomicFile file,
                  AtomicFile::create(
                      (std::filesystem::path(folder_) / "model.safetensors.index.json").string()));
    LR_TRY(file.write(text.data(), text.size()));
    return file.finish(options_.sync);
}

} // namespace lr::checkpoint
