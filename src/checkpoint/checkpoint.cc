// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/checkpoint.h"

#include "core/json.h"

#include <algorithm>
#include <filesystem>

namespace lr::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSingleName = "model.safetensors";
constexpr std::string_view kIndexName = "model.safetensors.index.json";

struct IndexEntry {
    std::string tensor;
    std::string shard;
};

std::string join(const std::string& folder, std::string_view name) {
    return (fs::path(folder) / name).string();
}

// File names "model*.safetensors" of a folder, sorted.
Result<std::vector<std::string>> list_shards(const std::string& folder) {
    std::error_code error;
    std::vector<std::string> names;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
        const std::string name = it->path().filename().string();
        if (name.starts_with("model") && name.ends_with(".safetensors"))
            names.push_back(name);
    }
    if (error)
        return fail(Code::kInternal, "checkpoint {}: cannot list the folder: {}", folder,
                    error.message());
    std::sort(names.begin(), names.end());
    return names;
}

// "a, b, c and 4 more"
std::string list_some(const std::vector<std::string>& names) {
    constexpr std::size_t kShown = 8;
    std::string text;
    for (std::size_t i = 0; i < std::min(kShown, names.size()); ++i)
        text += (i > 0 ? ", " : "") + names[i];
    if (names.size() > kShown)
        text += fmt::format(" and {} more", names.size() - kShown);
    return text;
}

// A shard name may not lead out of the folder.
bool is_plain_file_name(std::string_view name) {
    return name.ends_with(".safetensors") && name.find('/') == name.npos &&
           name.find('\\') == name.npos && name.find('\0') == name.npos && !name.starts_with('.');
}

Result<std::vector<IndexEntry>> read_index(const std::string& path) {
    LR_TRY_ASSIGN(const MappedFile file, MappedFile::open(path));
    if (file.size() > kMaxHeaderBytes)
        return fail(Code::kInvalidFile, "{}: expected an index of at most {} bytes, got {}", path,
                    kMaxHeaderBytes, file.size());
    const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()),
                                file.bytes().size());
    LR_TRY_ASSIGN(const Json json, parse_json(text, path, {.max_depth = 8}));
    LR_TRY_ASSIGN(const JsonCursor map, JsonCursor(path, json).required_object("weight_map"));
    std::vector<IndexEntry> entries;
    for (const JsonMember& member : map.value().as_object().members()) {
        const JsonCursor field = map.member(member.key);
        LR_TRY_ASSIGN(std::string shard, field.read_string());
        if (!is_plain_file_name(shard))
            return field.fail_expected("the plain name of a .safetensors file in the same folder");
        entries.push_back({member.key, std::move(shard)});
    }
    if (entries.empty())
        return fail(Code::kInvalidFile, "{}: weight_map: expected tensors, got none", path);
    LR_TRY(file.still_intact());
    return entries;
}

Status check_shard_files(const std::string& folder, const std::vector<std::string>& wanted) {
    LR_TRY_ASSIGN(const std::vector<std::string> present, list_shards(folder));
    std::vector<std::string> missing, extra;
    std::error_code ignored;
    for (const std::string& name : wanted)
        if (!fs::exists(join(folder, name), ignored))
            missing.push_back(name);
    if (!missing.empty())
        return fail(Code::kNotFound,
                    "checkpoint {}: {} of {} shards are missing: {}; download them again", folder,
                    missing.size(), wanted.size(), list_some(missing));
    std::set_difference(present.begin(), present.end(), wanted.begin(), wanted.end(),
                        std::back_inserter(extra));
    if (!extra.empty())
        return fail(Code::kInvalidFile,
                    "checkpoint {}: {} does not name {}; move leftovers of another download away",
                    folder, kIndexName, list_some(extra));
    return {};
}

// Every tensor of every shard is where the index says, and nowhere else. `index` is sorted by name.
Status check_index(const std::string& folder, const std::vector<IndexEntry>& index,
                   const std::vector<std::string>& shards,
                   const std::vector<SafetensorsFile>& files) {
    for (const IndexEntry& entry : index) {
        const auto at = std::lower_bound(shards.begin(), shards.end(), entry.shard);
        const SafetensorsFile& file = files[static_cast<std::size_t>(at - shards.begin())];
        if (file.find(entry.tensor) == nullptr)
            return fail(Code::kInvalidFile,
                        "checkpoint {}: {} places tensor '{}' in {}, which does not hold it",
                        folder, kIndexName, entry.tensor, entry.shard);
    }
    for (std::size_t s = 0; s < shards.size(); ++s) {
        for (const TensorInfo& tensor : files[s].tensors()) {
            const auto at = std::lower_bound(
                index.begin(), index.end(), tensor.name,
                [](const IndexEntry& entry, std::string_view name) { return entry.tensor < name; });
            if (at == index.end() || at->tensor != tensor.name)
                return fail(Code::kInvalidFile,
                            "checkpoint {}: {} holds tensor '{}', which {} does not name", folder,
                            shards[s], tensor.name, kIndexName);
            if (at->shard != shards[s])
                return fail(Code::kInvalidFile,
                            "checkpoint {}: tensor '{}' is in two shards, {} and {}", folder,
                            tensor.name, at->shard, shards[s]);
        }
    }
    return {};
}

} // namespace

Result<Checkpoint> Checkpoint::open(const std::string& path) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (status.type() == fs::file_type::not_found)
        return fail(Code::kNotFound, "checkpoint {}: no such file or folder", path);
    if (status.type() == fs::file_type::none)
        return fail(Code::kInternal, "checkpoint {}: cannot look at it: {}", path, error.message());
    Checkpoint checkpoint;
    if (!fs::is_directory(status)) {
        LR_TRY_ASSIGN(SafetensorsFile file, SafetensorsFile::open(path));
        checkpoint.files_.push_back(std::move(file));
    } else if (fs::exists(join(path, kIndexName), error)) {
        LR_TRY_ASSIGN(checkpoint, open_sharded(path));
    } else {
        LR_TRY_ASSIGN(const std::vector<std::string> present, list_shards(path));
        if (present.empty())
            return fail(Code::kNotFound,
                        "checkpoint {}: expected {} or {} in the folder, got neither", path,
                        kSingleName, kIndexName);
        if (present != std::vector<std::string>{std::string(kSingleName)})
            return fail(Code::kNotFound,
                        "checkpoint {}: expected {}, or {} beside its shards; got {} without it",
                        path, kSingleName, kIndexName, list_some(present));
        LR_TRY_ASSIGN(SafetensorsFile file, SafetensorsFile::open(join(path, kSingleName)));
        checkpoint.files_.push_back(std::move(file));
    }
    checkpoint.path_ = path;
    checkpoint.collect();
    return checkpoint;
}

Result<Checkpoint> Checkpoint::open_sharded(const std::string& folder) {
    LR_TRY_ASSIGN(std::vector<IndexEntry> index, read_index(join(folder, kIndexName)));
    std::vector<std::string> shards;
    for (const IndexEntry& entry : index)
        shards.push_back(entry.shard);
    std::sort(shards.begin(), shards.end());
    shards.erase(std::unique(shards.begin(), shards.end()), shards.end());
    LR_TRY(check_shard_files(folder, shards));

    Checkpoint checkpoint;
    for (const std::string& shard : shards) {
        LR_TRY_ASSIGN(SafetensorsFile file, SafetensorsFile::open(join(folder, shard)));
        checkpoint.files_.push_back(std::move(file));
    }
    std::sort(index.begin(), index.end(),
              [](const IndexEntry& a, const IndexEntry& b) { return a.tensor < b.tensor; });
    LR_TRY(check_index(folder, index, shards, checkpoint.files_));
    return checkpoint;
}

void Checkpoint::collect() {
    for (const SafetensorsFile& file : files_)
        tensors_.insert(tensors_.end(), file.tensors().begin(), file.tensors().end());
    std::sort(tensors_.begin(), tensors_.end(),
              [](const TensorInfo& a, const TensorInfo& b) { return a.name < b.name; });
    for (const TensorInfo& tensor : tensors_)
        total_bytes_ += tensor.bytes;
}

const TensorInfo* Checkpoint::find(std::string_view name) const {
    const auto at = std::lower_bound(
        tensors_.begin(), tensors_.end(), name,
        [](const TensorInfo& info, std::string_view wanted) { return info.name < wanted; });
    return at != tensors_.end() && at->name == name ? &*at : nullptr;
}

Result<TensorInfo> Checkpoint::require(std::string_view name) const {
    if (const TensorInfo* info = find(name))
        return *info;
    return fail(Code::kNotFound, "checkpoint {}: expected tensor '{}', which is not there", path_,
                name);
}

Status Checkpoint::still_intact() const {
    for (const SafetensorsFile& file : files_)
        LR_TRY(file.still_intact());
    return {};
}

} // namespace lr::checkpoint
