// SPDX-License-Identifier: Apache-2.0
#include "model/synth.h"

#include "checkpoint/atomic_file.h"
#include "core/check.h"
#include "core/log.h"
#include "model/synth_files.h"
#include "numerics/bf16.h"
#include "numerics/counter_rng.h"
#include "numerics/quantize.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <span>
#include <system_error>

namespace lr::model {
namespace {

namespace fs = std::filesystem;
using numerics::CounterRng;

// Elements that a thread makes at a time: long enough to hide the hand-over, and in the L2.
constexpr std::int64_t kGrain = std::int64_t{1} << 16;
constexpr std::int64_t kBlock = numerics::kFp8Block;

template <typename Store> void fill_values(const SynthTensor& tensor, std::uint64_t seed,
                                           std::int64_t begin, std::int64_t count, Store store) {
    const CounterRng rng(tensor.stream, seed);
    const auto first = static_cast<std::uint64_t>(tensor.first + begin);
    const auto a = static_cast<float>(tensor.distribution.a);
    if (tensor.distribution.kind == Distribution::Kind::kNormal) {
        const float scale = numerics::normal_scale(tensor.distribution.b);
        for (std::int64_t i = 0; i < count; ++i)
            store(i, rng.normal(first + static_cast<std::uint64_t>(i), scale, a));
    } else {
        const auto b = static_cast<float>(tensor.distribution.b);
        for (std::int64_t i = 0; i < count; ++i)
            store(i, rng.uniform(first + static_cast<std::uint64_t>(i), a, b));
    }
}

// Quantises one 128x128 block (short at the edges) of a matrix: codes go to `codes`, which points
// at the block's first element of rows `columns` apart. Returns the block's scale.
float quantise_block(const SynthTensor& tensor, std::uint64_t seed, std::int64_t first_row,
                     std::int64_t rows, std::int64_t first_column, std::int64_t width,
                     std::int64_t columns, std::byte* codes) {
    std::array<float, kBlock * kBlock> values;
    std::array<std::uint8_t, kBlock * kBlock> packed;
    for (std::int64_t r = 0; r < rows; ++r) {
        float* row = values.data() + r * width;
        fill_values(tensor, seed, (first_row + r) * columns + first_column, width,
                    [row](std::int64_t i, float value) { row[i] = numerics::round_bf16(value); });
    }
    float scale = 0.0f;
    const auto count = static_cast<std::size_t>(rows * width);
    numerics::quantize_fp8_block(std::span(values).first(count), width,
                                 numerics::ScaleStorage::kBF16, std::span(packed).first(count),
                                 {&scale, 1});
    for (std::int64_t r = 0; r < rows; ++r)
        std::memcpy(codes + r * columns, packed.data() + r * width,
                    static_cast<std::size_t>(width));
    return scale;
}

class Generator {
  public:
    Generator(checkpoint::ShardedWriter& writer, const SynthOptions& options, ThreadPool& pool,
              Progress& progress)
        : writer_(writer), seed_(options.seed), chunk_bytes_(options.chunk_bytes), pool_(pool),
          progress_(progress) {}

    Status write(const SynthTensor& tensor) {
        return tensor.scale ? write_quantised(tensor) : write_plain(tensor);
    }

    // Returns when everything has been handed to the writer.
    Status flush() { return pending_.valid() ? pending_.get() : Status(); }

  private:
    Status write_plain(const SynthTensor& tensor) {
        const std::int64_t total = tensor.spec.shape.count();
        const std::int64_t size = dtype_bytes(tensor.spec.dtype, 1);
        const std::int64_t step = std::max(chunk_bytes_ / size, std::int64_t{1});
        for (std::int64_t begin = 0; begin < total; begin += step) {
            const std::int64_t count = std::min(step, total - begin);
            buffer_.resize(static_cast<std::size_t>(count * size));
            pool_.parallel_for(count, kGrain, [&](std::int64_t from, std::int64_t to) {
                synth_values(tensor, seed_, begin + from, to - from, buffer_.data() + from * size);
            });
            LR_TRY(append(tensor.spec.name));
        }
        return {};
    }

    Status write_quantised(const SynthTensor& tensor) {
        const std::int64_t rows = tensor.spec.shape[0], columns = tensor.spec.shape[1];
        const std::int64_t across = tensor.scale->shape[1];
        std::vector<std::uint16_t> scales(static_cast<std::size_t>(tensor.scale->shape.count()));
        const std::int64_t step = std::max(chunk_bytes_ / columns / kBlock, std::int64_t{1});
        for (std::int64_t band = 0; band * kBlock < rows; band += step) {
            const std::int64_t first_row = band * kBlock;
            const std::int64_t count = std::min(step * kBlock, rows - first_row);
            buffer_.resize(static_cast<std::size_t>(count * columns));
            const std::int64_t blocks = (count + kBlock - 1) / kBlock * across;
            pool_.parallel_for(blocks, 4, [&](std::int64_t from, std::int64_t to) {
                for (std::int64_t b = from; b < to; ++b) {
                    const std::int64_t row = b / across * kBlock, column = b % across * kBlock;
                    const float scale = quantise_block(tensor, seed_, first_row + row,
                                                       std::min(kBlock, count - row), column,
                                                       std::min(kBlock, columns - column), columns,
                                                       buffer_.data() + row * columns + column);
                    scales[static_cast<std::size_t>(band * across + b)] =
                        numerics::encode_bf16(scale);
                }
            });
            LR_TRY(append(tensor.spec.name));
        }
        const auto bytes = std::as_bytes(std::span(scales));
        buffer_.assign(bytes.begin(), bytes.end());
        return append(tensor.scale->name);
    }

    // Writes the buffer while the next one is made.
    Status append(const std::string& name) {
        LR_TRY(flush());
        std::swap(buffer_, written_);
        const auto write = [this, name] { return writer_.append(name, written_); };
        try {
            pending_ = std::async(std::launch::async, write);
        } catch (const std::system_error&) { // no thread to be had
            LR_TRY(write());
        }
        progress_.advance(static_cast<std::int64_t>(written_.size()));
        return {};
    }

    checkpoint::ShardedWriter& writer_;
    const std::uint64_t seed_;
    const std::int64_t chunk_bytes_;
    ThreadPool& pool_;
    Progress& progress_;
    std::vector<std::byte> buffer_, written_;
    std::future<Status> pending_; // reads written_; its destructor waits
};

bool is_checkpoint_file(const std::string& name) {
    return name == "config.json" || name == "model.safetensors.index.json" ||
           (name.starts_with("model") &&
            (name.ends_with(".safetensors") || name.ends_with(".safetensors.partial")));
}

// The folder exists afterwards and holds no checkpoint.
Status prepare_folder(const std::string& folder, bool overwrite) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (!fs::is_directory(folder))
        return fail(Code::kInvalidArgument, "{}: cannot be made a folder: {}", folder,
                    error ? error.message() : "a file of that name exists");
    std::vector<fs::path> found;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error))
        if (is_checkpoint_file(entry->path().filename().string()))
            found.push_back(entry->path());
    if (!found.empty() && !overwrite)
        return fail(Code::kInvalidArgument,
                    "{}: expected a folder without a checkpoint, found {}; pass --overwrite to "
                    "remove its config.json, index and model*.safetensors first",
                    folder, found.front().filename().string());
    for (const fs::path& path : found)
        if (!fs::remove(path, error) || error)
            return fail(Code::kInternal, "{}: cannot be removed: {}", path.string(),
                        error.message());
    return {};
}

Status write_json(const fs::path& path, const Json& value, int indent = 2) {
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file << to_json_string(value, indent) << '\n';
    file.close();
    if (!file)
        return fail(Code::kInternal, "{}: cannot be written", path.string());
    return {};
}

Status write_weights(const std::string& folder, const std::vector<SynthTensor>& plan,
                     const SynthOptions& options, ThreadPool& pool, SynthReport& report) {
    std::vector<checkpoint::TensorSpec> specs;
    for (const SynthTensor& tensor : plan) {
        specs.push_back(tensor.spec);
        if (tensor.scale)
            specs.push_back(*tensor.scale);
    }
    report.tensors = static_cast<std::int64_t>(specs.size());
    report.bytes = synth_bytes(plan);
    LR_TRY(checkpoint::check_space(folder, report.bytes, "take fewer layers or another disk"));
    checkpoint::ShardedWriter::Options writer_options;
    writer_options.max_shard_bytes = options.max_shard_bytes;
    writer_options.metadata = {{"format", "pt"}, {"seed", std::to_string(options.seed)}};
    LR_TRY_ASSIGN(auto writer, checkpoint::ShardedWriter::create(folder, std::move(specs),
                                                                 std::move(writer_options)));
    report.files = static_cast<std::int64_t>(writer.shard_names().size());
    Progress progress("writing weights", report.bytes, "bytes");
    Generator generator(writer, options, pool, progress);
    for (const SynthTensor& tensor : plan)
        LR_TRY(generator.write(tensor));
    LR_TRY(generator.flush());
    return writer.finish();
}

Model declare_stored(const Config& config, const FormatPolicy& policy, bool split_experts) {
    Model model = Model::declare(config, policy);
    for (Entry& entry : model.entries())
        if (split_experts && entry.kind == TensorKind::kRouted)
            entry.stored_per_expert = true;
    return model;
}

} // namespace

void synth_values(const SynthTensor& tensor, std::uint64_t seed, std::int64_t begin,
                  std::int64_t count, std::byte* out) {
    if (tensor.spec.dtype == DType::kF32) {
        fill_values(tensor, seed, begin, count,
                    [out](std::int64_t i, float value) { std::memcpy(out + 4 * i, &value, 4); });
        return;
    }
    LR_CHECK(tensor.spec.dtype == DType::kBF16);
    fill_values(tensor, seed, begin, count, [out](std::int64_t i, float value) {
        const std::uint16_t code = numerics::encode_bf16(value);
        std::memcpy(out + 2 * i, &code, 2);
    });
}

Result<SynthReport> synth_checkpoint(const std::string& folder, const Config& config,
                                     const SynthOptions& options, ThreadPool& pool) {
    if (options.format != WeightFormat::kPlain && options.format != WeightFormat::kFp8Block)
        return fail(Code::kInvalidArgument, "format: expected bf16 or fp8-block, got {}",
                    numerics::weight_format_name(options.format));
    LR_TRY(check_config(config, "config"));
    LR_TRY_ASSIGN(const SynthTokenizer tokenizer, synth_tokenizer(config.vocab_size));
    LR_TRY_ASSIGN(const FormatPolicy policy,
                  format_policy(numerics::weight_format_name(options.format)));
    const Model model = declare_stored(config, policy, options.split_experts);
    std::vector<SynthTensor> plan = synth_plan(model);
    if (options.bf16_vectors)
        for (SynthTensor& tensor : plan)
            if (tensor.spec.dtype == DType::kF32)
                tensor.spec.dtype = DType::kBF16;
    LR_TRY(prepare_folder(folder, options.overwrite));
    if (!options.plan_file.empty())
        LR_TRY(write_json(options.plan_file, synth_plan_to_json(plan, options.seed)));
    SynthReport report;
    LR_TRY(write_weights(folder, plan, options, pool, report));
    const fs::path root = folder;
    LR_TRY(write_json(root / "tokenizer.json", synth_tokenizer_json(tokenizer), 1));
    LR_TRY(write_json(root / "tokenizer_config.json", synth_tokenizer_config_json(tokenizer)));
    LR_TRY(write_json(root / "generation_config.json", synth_generation_config_json(tokenizer)));
    LR_TRY(write_json(root / "config.json", synth_config_json(model)));
    return report;
}

} // namespace lr::model
