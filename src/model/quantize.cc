// SPDX-License-Identifier: Apache-2.0
#include "model/quantize.h"

#include "checkpoint/atomic_file.h"
#include "core/log.h"
#include "model/quantize_batch.h"
#include "model/quantize_folder.h"

#include <algorithm>
#include <future>
#include <memory>
#include <system_error>

namespace lr::model {
namespace {

std::string kind_name(const Entry& entry, const Config& config) {
    switch (entry.kind) {
    case TensorKind::kMixer:
        return config.layers[static_cast<std::size_t>(entry.layer)] == LayerKind::kGdn
                   ? "gdn"
                   : "attention";
    case TensorKind::kShared:
        return "shared expert";
    case TensorKind::kRouted:
        return "routed experts";
    default:
        return "ffn";
    }
}

class Quantizer {
  public:
    Quantizer(const OpenModel& opened, const QuantizePlan& plan, const QuantizeOptions& options,
              QuantizeFolder& folder, ThreadPool& pool)
        : opened_(opened), plan_(plan), options_(options), folder_(folder), pool_(pool) {}

    Result<QuantizeReport> run(const std::string& out) {
        std::int64_t left = 0;
        for (const QuantizeShard& shard : plan_.shards) {
            const bool kept = folder_.complete(shard.file.name) != nullptr;
            left += kept ? 0 : shard.bytes();
            report_.kept_files += kept;
        }
        if (report_.kept_files > 0)
            log_info("{}: going on behind {} complete file{}", out, report_.kept_files,
                     report_.kept_files == 1 ? "" : "s");
        LR_TRY(checkpoint::check_space(out, left, "make room or take another disk"));
        {
            Progress progress("quantising", left, "bytes");
            progress_ = &progress;
            for (const QuantizeShard& shard : plan_.shards)
                if (folder_.complete(shard.file.name) == nullptr)
                    LR_TRY(write_shard(shard));
        }
        LR_TRY(fill_report());
        LR_TRY(folder_.finish());
        return std::move(report_);
    }

  private:
    Status write_shard(const QuantizeShard& shard) {
        LR_TRY(opened_.checkpoint->still_intact());
        LR_TRY_ASSIGN(checkpoint::SafetensorsWriter writer,
                      checkpoint::SafetensorsWriter::create(folder_.file(shard.file.name),
                                                            shard.file.specs, {{"format", "pt"}}));
        QuantizeFolder::Errors errors;
        const auto jobs = std::span(plan_.jobs).subspan(shard.first_job, shard.jobs);
        const Status status = write_jobs(jobs, writer, errors);
        const Status written = flush(); // the writer must outlive what still writes to it
        LR_TRY(status);
        LR_TRY(written);
        LR_TRY(opened_.checkpoint->still_intact());
        LR_TRY(writer.finish(true));
        return folder_.record(shard.file.name, std::move(errors));
    }

    // Quantises a batch while the one before is written.
    Status write_jobs(std::span<const QuantizeJob> jobs, checkpoint::SafetensorsWriter& writer,
                      QuantizeFolder::Errors& errors) {
        while (!jobs.empty()) {
            std::size_t count = 0;
            for (std::int64_t elements = 0; count < jobs.size(); ++count) {
                elements += jobs[count].elements();
                if (count > 0 && elements > options_.batch_elements)
                    break;
            }
            auto batch = std::make_unique<QuantizeBatch>(plan_, jobs.first(count));
            jobs = jobs.subspan(count);
            LR_TRY(batch->run(pool_));
            for (const QuantizeBatch::Error& part : batch->errors())
                errors[part.entry].add(part.error);
            LR_TRY(flush());
            LR_TRY(begin_writing(std::move(batch), writer));
        }
        return {};
    }

    Status begin_writing(std::unique_ptr<QuantizeBatch> batch,
                         checkpoint::SafetensorsWriter& writer) {
        written_ = std::move(batch);
        const auto write = [this, &writer] {
            return written_->write(writer,
                                   [this](std::int64_t count) { progress_->advance(count); });
        };
        try {
            pending_ = std::async(std::launch::async, write);
            return {};
        } catch (const std::system_error&) { // no thread to be had
            return write();
        }
    }

    Status flush() { return pending_.valid() ? pending_.get() : Status(); }

    Status fill_report() {
        QuantizeFolder::Errors all;
        for (const QuantizeShard& shard : plan_.shards) {
            const QuantizeFolder::Errors* errors = folder_.complete(shard.file.name);
            if (!errors)
                return fail(Code::kInternal, "{}: was there and is gone; run it again",
                            folder_.file(shard.file.name));
            report_.tensors += static_cast<std::int64_t>(shard.file.specs.size());
            for (const auto& [entry, error] : *errors)
                all[entry].add(error);
        }
        report_.files = static_cast<std::int64_t>(plan_.shards.size());
        report_.input_bytes = opened_.checkpoint->total_bytes();
        report_.bytes = plan_.bytes();
        for (const auto& [index, error] : all) {
            const Entry& entry = plan_.model.entries()[static_cast<std::size_t>(index)];
            report_.modules.push_back(
                {entry.name, kind_name(entry, plan_.model.config()), entry.format, error});
            add_to_kind(report_.modules.back());
        }
        return {};
    }

    void add_to_kind(const QuantizeReport::Module& module) {
        auto& kinds = report_.kinds;
        auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const QuantizeReport::Kind& row) {
            return row.name == module.kind;
        });
        if (kind == kinds.end())
            kind = kinds.insert(kind, {module.kind, module.format, {}, ""});
        kind->error.add(module.error);
        double& worst = worst_[module.kind];
        if (kind->worst.empty() || module.error.relative_rms() > worst) {
            kind->worst = module.name;
            worst = module.error.relative_rms();
        }
    }

    const OpenModel& opened_;
    const QuantizePlan& plan_;
    const QuantizeOptions& options_;
    QuantizeFolder& folder_;
    ThreadPool& pool_;
    Progress* progress_ = nullptr;
    std::unique_ptr<QuantizeBatch> written_;
    std::future<Status> pending_; // reads written_; its destructor waits
    std::map<std::string, double> worst_;
    QuantizeReport report_;
};

} // namespace

Result<QuantizeReport> quantize_checkpoint(const std::string& in, const std::string& out,
                                           const QuantizeOptions& options, ThreadPool& pool) {
    LR_TRY_ASSIGN(const OpenModel opened, open_model(in));
    LR_TRY_ASSIGN(const QuantizePlan plan,
                  plan_quantize(opened, options.scheme, options.max_shard_bytes, options.ranges));
    LR_TRY_ASSIGN(QuantizeFolder folder,
                  QuantizeFolder::open(out, opened, plan, options.max_shard_bytes));
    return Quantizer(opened, plan, options, folder, pool).run(out);
}

} // namespace lr::model
