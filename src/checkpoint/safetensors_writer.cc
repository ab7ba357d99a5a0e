// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/safetensors_writer.h"

#include "checkpoint/atomic_file.h"
#include "checkpoint/file_dtype.h"
#include "core/json.h"

#include <algorithm>
#include <array>
#include <filesystem>

namespace lr::checkpoint {
namespace {

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

std::vector<ShardPlan> plan_shards(std::vector<std::vector<TensorSpec>> groups,
                                   std::int64_t max_shard_bytes) {
    std::vector<ShardPlan> shards(1);
    std::int64_t shard_bytes = 0;
    for (std::vector<TensorSpec>& group : groups) {
        std::int64_t bytes = 0;
        for (const TensorSpec& spec : group)
            bytes += spec.bytes();
        if (!shards.back().specs.empty() && shard_bytes + bytes > max_shard_bytes) {
            shards.emplace_back();
            shard_bytes = 0;
        }
        shard_bytes += bytes;
        std::move(group.begin(), group.end(), std::back_inserter(shards.back().specs));
    }
    const std::size_t count = shards.size();
    for (std::size_t s = 0; s < count; ++s)
        shards[s].name = count == 1 ? "model.safetensors"
                                    : fmt::format("model-{:05}-of-{:05}.safetensors", s + 1, count);
    return shards;
}

Status write_index(const std::string& folder, const std::vector<ShardPlan>& shards, bool sync) {
    if (shards.size() == 1)
        return {};
    std::int64_t total = 0;
    std::vector<JsonMember> map;
    for (const ShardPlan& shard : shards) {
        for (const TensorSpec& spec : shard.specs) {
            total += spec.bytes();
            map.push_back({spec.name, Json(shard.name)});
        }
    }
    std::sort(map.begin(), map.end(),
              [](const JsonMember& a, const JsonMember& b) { return a.key < b.key; });
    const Json index = Json::object({{"metadata", Json::object({{"total_size", Json(total)}})},
                                     {"weight_map", Json::object(std::move(map))}});
    return write_file((std::filesystem::path(folder) / "model.safetensors.index.json").string(),
                      to_json_string(index, 2) + "\n", sync);
}

Result<ShardedWriter> ShardedWriter::create(const std::string& folder,
                                            std::vector<TensorSpec> specs, Options options) {
    LR_TRY(check_names(folder, specs));
    ShardedWriter writer;
    writer.folder_ = folder;
    std::vector<std::vector<TensorSpec>> groups;
    for (TensorSpec& spec : specs)
        groups.push_back({std::move(spec)});
    writer.shards_ = plan_shards(std::move(groups), options.max_shard_bytes);
    for (const ShardPlan& shard : writer.shards_)
        writer.shard_names_.push_back(shard.name);
    writer.options_ = std::move(options);
    LR_TRY(writer.open_shard(0));
    return writer;
}

Status ShardedWriter::open_shard(std::size_t shard) {
    const std::string path = (std::filesystem::path(folder_) / shard_names_[shard]).string();
    LR_TRY_ASSIGN(SafetensorsWriter writer,
                  SafetensorsWriter::create(path, shards_[shard].specs, options_.metadata));
    writer_.emplace(std::move(writer));
    shard_ = shard;
    remaining_ = 0;
    for (const TensorSpec& spec : shards_[shard].specs)
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
    return write_index(folder_, shards_, options_.sync);
}

} // namespace lr::checkpoint
