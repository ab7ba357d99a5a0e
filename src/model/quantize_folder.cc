// SPDX-License-Identifier: Apache-2.0
#include "model/quantize_folder.h"

#include "checkpoint/atomic_file.h"
#include "core/text_file.h"
#include "core/version.h"
#include "numerics/counter_rng.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <unistd.h>
#include <utility>

namespace lr::model {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNote = "liverow-quantize.json";
constexpr std::array<std::string_view, 2> kConfigs = {"config.json", "hf_quant_config.json"};
// Names that hold weights, of this format or another.
constexpr std::array<std::string_view, 9> kWeights = {".safetensors", ".safetensors.index.json",
                                                      ".bin",         ".bin.index.json",
                                                      ".pt",          ".pth",
                                                      ".gguf",        ".onnx",
                                                      ".h5"};

std::int64_t time_of(const fs::path& path) {
    std::error_code ignored;
    return static_cast<std::int64_t>(fs::last_write_time(path, ignored).time_since_epoch().count());
}

Json file_state(const std::string& path) {
    std::error_code ignored;
    return Json::object({{"name", Json(fs::path(path).filename().string())},
                         {"bytes", Json(static_cast<std::int64_t>(fs::file_size(path, ignored)))},
                         {"time", Json(time_of(path))}});
}

Json input_state(const OpenModel& opened) {
    JsonArray files;
    files.push_back(file_state(opened.folder + "/config.json"));
    for (const checkpoint::SafetensorsFile& file : opened.checkpoint->files())
        files.push_back(file_state(file.path()));
    return Json(std::move(files));
}

// What tells one calibration from another, in few characters; null without one.
Json input_scales_of(const QuantizePlan& plan) {
    if (!plan.scheme.calibrated)
        return Json();
    std::string scales;
    for (const Entry& entry : plan.model.entries())
        scales += fmt::format("{} ", entry.input_scale);
    return Json(fmt::format("{:016x}", numerics::fnv1a64(scales)));
}

Json options_of(const QuantizePlan& plan, std::int64_t max_shard_bytes) {
    const QuantizeScheme& scheme = plan.scheme;
    return Json::object(
        {{"format", Json(quantize_format_name(scheme.format))},
         {"flavor", Json(quantize_flavor_name(scheme.flavor))},
         {"experts_only", Json(scheme.experts_only)},
         {"scales", Json(scheme.scales == numerics::BlockScales::kMse ? "mse" : "max")},
         {"input_scales", input_scales_of(plan)},
         {"shard_bytes", Json(max_shard_bytes)}});
}

// "config.json", or nothing for an empty folder. What writing a note left behind does not count.
std::string any_file(const std::string& folder) {
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
        const std::string name = entry->path().filename().string();
        if (!name.starts_with(kNote))
            return name;
    }
    return "";
}

bool is_copied(const fs::directory_entry& entry) {
    const std::string name = entry.path().filename().string();
    std::error_code ignored;
    const auto ends = [&](std::string_view suffix) { return name.ends_with(suffix); };
    return entry.is_regular_file(ignored) && !name.starts_with(".") && name != kNote &&
           std::find(kConfigs.begin(), kConfigs.end(), name) == kConfigs.end() &&
           std::none_of(kWeights.begin(), kWeights.end(), ends);
}

} // namespace

QuantizeFolder::QuantizeFolder(QuantizeFolder&& other) noexcept
    : path_(std::move(other.path_)), opened_(other.opened_), plan_(other.plan_),
      made_(std::move(other.made_)), complete_(std::move(other.complete_)),
      lock_(std::exchange(other.lock_, -1)) {}

QuantizeFolder::~QuantizeFolder() {
    if (lock_ >= 0)
        ::close(lock_);
}

Result<QuantizeFolder> QuantizeFolder::open(const std::string& path, const OpenModel& opened,
                                            const QuantizePlan& plan,
                                            std::int64_t max_shard_bytes) {
    QuantizeFolder folder(path, opened, plan);
    folder.made_ = Json::object({{"liverow", Json(kVersion)},
                                 {"options", options_of(plan, max_shard_bytes)},
                                 {"input", input_state(opened)}});
    LR_TRY(folder.prepare());
    return folder;
}

Status QuantizeFolder::prepare() {
    std::error_code error;
    fs::create_directories(path_, error);
    if (!fs::is_directory(path_))
        return fail(Code::kInvalidArgument, "{}: cannot be made a folder: {}", path_,
                    error ? error.message() : "a file of that name exists");
    if (fs::equivalent(path_, opened_.folder, error))
        return fail(Code::kInvalidArgument,
                    "{}: is the folder of the input; expected another one for the copy", path_);
    LR_TRY(lock());
    if (fs::exists(file(kNote))) {
        LR_TRY_ASSIGN(const std::string text, read_text_file(file(kNote)));
        LR_TRY_ASSIGN(const Json note, parse_json(text, file(kNote)));
        return read_note(note);
    }
    const std::string found = any_file(path_);
    if (!found.empty())
        return fail(Code::kInvalidArgument,
                    "{}: expected a new or empty folder, or one that an interrupted run left; "
                    "found {}",
                    path_, found);
    return write_note();
}

// Two runs in one folder would write each other's files. The lock goes with the process.
Status QuantizeFolder::lock() {
    lock_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (lock_ < 0)
        return fail(Code::kInternal, "{}: cannot open the folder: {}", path_, std::strerror(errno));
    if (::flock(lock_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return fail(Code::kInvalidArgument, "{}: another process is quantising into it", path_);
    return {};
}

Status QuantizeFolder::read_note(const Json& note) {
    const JsonCursor root(file(kNote), note);
    for (const JsonMember& member : made_.as_object().members()) {
        LR_TRY_ASSIGN(const JsonCursor found, root.required(member.key));
        const std::string before = to_json_string(found.value());
        const std::string now = to_json_string(member.value);
        if (before == now)
            continue;
        if (member.key == "input")
            return fail(Code::kInvalidArgument,
                        "{}: holds an unfinished run from other files than {} has now; finish it "
                        "with those, or remove the folder",
                        path_, opened_.folder);
        return fail(Code::kInvalidArgument,
                    "{}: holds an unfinished run with {} {}, now it is {}; repeat that, or remove "
                    "the folder",
                    path_, member.key, before, now);
    }
    LR_TRY_ASSIGN(const JsonCursor complete, root.required_object("complete"));
    for (const JsonMember& shard : complete.value().as_object().members()) {
        Errors errors;
        const JsonCursor cursor = complete.member(shard.key);
        LR_TRY(cursor.expect_object());
        for (const JsonMember& module : shard.value.as_object().members()) {
            const std::int32_t entry = plan_.model.index(module.key);
            if (entry < 0)
                return cursor.fail_expected(
                    fmt::format("weights of this model, not {}", module.key));
            LR_TRY_ASSIGN(errors[entry], quantize_error_from_json(cursor.member(module.key)));
        }
        complete_.emplace(shard.key, std::move(errors));
    }
    return {};
}

Status QuantizeFolder::write_note() const {
    std::vector<JsonMember> shards;
    for (const auto& [shard, errors] : complete_) {
        std::vector<JsonMember> modules;
        for (const auto& [entry, error] : errors)
            modules.push_back({plan_.model.entries()[static_cast<std::size_t>(entry)].name,
                               quantize_error_to_json(error)});
        shards.push_back({shard, Json::object(std::move(modules))});
    }
    std::vector<JsonMember> members = made_.as_object().members();
    members.push_back({"complete", Json::object(std::move(shards))});
    return checkpoint::write_file(file(kNote),
                                  to_json_string(Json::object(std::move(members)), 1) + "\n", true);
}

const QuantizeFolder::Errors* QuantizeFolder::complete(const std::string& shard) const {
    const auto found = complete_.find(shard);
    return found != complete_.end() && fs::exists(file(shard)) ? &found->second : nullptr;
}

Status QuantizeFolder::record(const std::string& shard, Errors errors) {
    complete_[shard] = std::move(errors);
    return write_note();
}

Status QuantizeFolder::copy_others() const {
    std::error_code error;
    for (fs::directory_iterator entry(opened_.folder, error), end; !error && entry != end;
         entry.increment(error)) {
        if (!is_copied(*entry))
            continue;
        LR_TRY_ASSIGN(const std::string text, read_text_file(entry->path().string()));
        LR_TRY(checkpoint::write_file(file(entry->path().filename().string()), text, true));
    }
    if (error)
        return fail(Code::kInternal, "{}: cannot list the folder: {}", opened_.folder,
                    error.message());
    return {};
}

// The input's config.json with another `quantization_config`.
Status QuantizeFolder::write_configs() const {
    const auto write = [&](const char* name, const Json& json) {
        return checkpoint::write_file(file(name), to_json_string(json, 2) + "\n", true);
    };
    if (const auto json = hf_quant_config(plan_.scheme, plan_.model, plan_.names))
        LR_TRY(write("hf_quant_config.json", *json));
    const std::string path = opened_.folder + "/config.json";
    LR_TRY_ASSIGN(const std::string text, read_text_file(path));
    LR_TRY_ASSIGN(const Json config, parse_json(text, path));
    LR_TRY(JsonCursor(path, config).expect_object());
    std::vector<JsonMember> members = config.as_object().members();
    std::erase_if(members, [](const JsonMember& m) { return m.key == "quantization_config"; });
    members.push_back(
        {"quantization_config", quantization_config(plan_.scheme, plan_.model, plan_.names)});
    return write("config.json", Json::object(std::move(members)));
}

Status QuantizeFolder::finish() {
    std::vector<checkpoint::ShardPlan> shards;
    for (const QuantizeShard& shard : plan_.shards)
        shards.push_back(shard.file);
    LR_TRY(checkpoint::write_index(path_, shards, true));
    LR_TRY(copy_others());
    LR_TRY(write_configs());
    std::error_code error;
    fs::remove(file(kNote), error);
    if (error)
        return fail(Code::kInternal, "{}: cannot be removed: {}", file(kNote), error.message());
    return {};
}

} // namespace lr::model
