// SPDX-License-Identifier: Apache-2.0
#include "model/quantize_plan.h"

#include "core/check.h"
#include "core/log.h"

#include <algorithm>
#include <set>

namespace lr::model {
namespace {

using checkpoint::StoredFormat;
using checkpoint::StoredWeight;
using checkpoint::TensorInfo;
using checkpoint::TensorSpec;

class Planner {
  public:
    Planner(const OpenModel& opened, const QuantizeScheme& scheme, const InputRanges& ranges)
        : opened_(opened), resolved_(opened.resolved), ranges_(ranges) {
        plan_.scheme = scheme;
    }

    Result<QuantizePlan> run(std::int64_t max_shard_bytes) {
        LR_TRY(check_input());
        plan_.model = Model::declare(opened_.config(), quantize_policy(plan_.scheme));
        plan_.names.text_prefix = resolved_.prefix;
        for (std::size_t i = 0; i < plan_.model.entries().size(); ++i)
            LR_TRY(add_entry(static_cast<std::int32_t>(i)));
        // Vision, MTP of a config that has none: whatever no entry names.
        for (const TensorInfo& tensor : opened_.checkpoint->tensors()) {
            note_names(tensor.name);
            if (!used_.contains(tensor.name))
                LR_TRY(add_copy(tensor));
        }
        std::stable_partition(plan_.jobs.begin(), plan_.jobs.end(), [](const QuantizeJob& job) {
            return job.copied && job.copied->dtype == DType::kF32;
        });
        cut_into_files(max_shard_bytes);
        return std::move(plan_);
    }

  private:
    Failure error(Code code, std::string message) const {
        return fail(code, "{}: {}", opened_.folder, message);
    }

    Status check_input() const {
        for (const auto& entry : resolved_.stored)
            for (const StoredWeight& weight : entry)
                if (weight.format != StoredFormat::kPlain)
                    return error(
                        Code::kInvalidFile,
                        fmt::format("expected a checkpoint in BF16, F16 or F32, but '{}' is stored "
                                    "as {}: quantise the release it was made from",
                                    weight.weight->name,
                                    checkpoint::stored_format_name(weight.format)));
        const bool moe = opened_.config().moe();
        if (!moe && plan_.scheme.experts_only)
            return error(Code::kInvalidArgument,
                         "expected a mixture of experts for experts-only, got a dense model");
        if (!moe && plan_.scheme.format == QuantizeFormat::kNvfp4Mixed)
            return error(Code::kInvalidArgument,
                         "nvfp4-mixed stores routed experts in NVFP4, and this model has none: "
                         "take nvfp4 or fp8-channel");
        return {};
    }

    Status add_entry(std::int32_t index) {
        const auto at = static_cast<std::size_t>(index);
        const Entry& target = plan_.model.entries()[at];
        const Entry& found = resolved_.model.entries()[at];
        LR_CHECK_EQ(target.name, found.name);
        const std::vector<StoredWeight>& stored = resolved_.stored[at];
        for (const StoredWeight& weight : stored)
            used_.insert(weight.weight->name);
        if (target.format == WeightFormat::kPlain) {
            for (const StoredWeight& weight : stored)
                LR_TRY(add_copy(*weight.weight));
            return {};
        }
        if (plan_.scheme.calibrated)
            LR_TRY(set_input_scale(plan_.model.entries()[at]));
        if (target.kind == TensorKind::kRouted)
            return add_experts(index, found.stored_per_expert, stored);
        QuantizeJob job{.entry = index};
        for (std::size_t s = 0; s < target.sources.size(); ++s)
            LR_TRY(add_matrix(job, target.sources[s].name, target.sources[s].shape,
                              *stored[s].weight, 0));
        plan_.jobs.push_back(std::move(job));
        return {};
    }

    Status set_input_scale(Entry& entry) const {
        const auto range = ranges_.find(entry.name);
        if (range == ranges_.end())
            return error(Code::kInvalidArgument,
                         fmt::format("{}: expected the range of its inputs, got none", entry.name));
        const float amax = range->second;
        if (amax == 0) {
            // The scale of a range of 0 would saturate whatever does come.
            log_warning("{}: its inputs were all 0 in calibration; their scale is 1", entry.name);
            entry.input_scale = 1;
        } else {
            entry.input_scale = entry.format == WeightFormat::kNvfp4
                                    ? numerics::nvfp4_decode_scale(amax).value
                                    : numerics::fp8_scale(amax);
        }
        return {};
    }

    // Stored one by one or in a stack [E, N, K]: written one by one.
    Status add_experts(std::int32_t index, bool per_expert,
                       const std::vector<StoredWeight>& stored) {
        const Entry& entry = plan_.model.entries()[static_cast<std::size_t>(index)];
        std::int64_t first = 0;
        std::size_t next = 0;
        for (std::int64_t e = 0; e < entry.shape[0]; ++e) {
            QuantizeJob job{.entry = index};
            for (const SourceTensor& source : entry.per_expert) {
                const std::string name = fmt::format(fmt::runtime(source.name), e);
                const StoredWeight& weight = stored[per_expert ? next++ : 0];
                LR_TRY(add_matrix(job, name, source.shape, *weight.weight, per_expert ? 0 : first));
                first += source.shape.count();
            }
            plan_.jobs.push_back(std::move(job));
        }
        return {};
    }

    Status add_matrix(QuantizeJob& job, std::string_view name, const Shape& shape,
                      const TensorInfo& source, std::int64_t first) {
        const Entry& entry = plan_.model.entries()[static_cast<std::size_t>(job.entry)];
        name.remove_suffix(std::string_view(".weight").size());
        const std::string base = fmt::format("{}{}", resolved_.prefix, name);
        if (entry.format == WeightFormat::kNvfp4 && shape[1] % numerics::kNvfp4Block != 0)
            return error(
                Code::kUnsupported,
                fmt::format("{} {}: NVFP4 needs rows of whole blocks of {}, got {} columns", base,
                            shape.to_string(), numerics::kNvfp4Block, shape[1]));
        job.matrices.push_back(
            {&source, first, shape[0], shape[1],
             stored_specs(plan_.scheme, entry.format, base, shape[0], shape[1])});
        return {};
    }

    Status add_copy(const TensorInfo& tensor) {
        const Result<ConstView> view = tensor.view(); // refuses what has no dtype here
        if (!view)
            return view.error();
        plan_.jobs.push_back({.copied = &tensor});
        return {};
    }

    void note_names(std::string_view name) {
        plan_.names.mtp = plan_.names.mtp || name.starts_with("mtp.");
        for (std::string_view vision : {"model.visual", "visual"})
            if (name.starts_with(fmt::format("{}.", vision)))
                plan_.names.vision = vision;
    }

    void cut_into_files(std::int64_t max_shard_bytes) {
        std::vector<std::vector<TensorSpec>> groups;
        for (const QuantizeJob& job : plan_.jobs)
            groups.push_back(job.specs());
        std::size_t job = 0;
        for (checkpoint::ShardPlan& file : checkpoint::plan_shards(groups, max_shard_bytes)) {
            QuantizeShard shard{std::move(file), job};
            for (std::size_t specs = 0; specs < shard.file.specs.size(); ++job)
                specs += groups[job].size();
            shard.jobs = job - shard.first_job;
            plan_.shards.push_back(std::move(shard));
        }
        LR_CHECK_EQ(job, plan_.jobs.size());
    }

    const OpenModel& opened_;
    const ResolvedModel& resolved_;
    const InputRanges& ranges_;
    QuantizePlan plan_;
    std::set<std::string_view> used_;
};

} // namespace

std::int64_t QuantizeJob::elements() const {
    std::int64_t count = 0;
    for (const QuantizeMatrix& matrix : matrices)
        count += matrix.elements();
    return count;
}

std::vector<TensorSpec> QuantizeJob::specs() const {
    if (copied)
        return {{std::string(copied->name), *copied->dtype, copied->shape}};
    std::vector<TensorSpec> specs;
    for (const QuantizeMatrix& matrix : matrices)
        for (const StoredSpec& out : matrix.out)
            specs.push_back(out.spec);
    checkpoint::sort_for_alignment(specs);
    return specs;
}

std::int64_t QuantizeShard::bytes() const {
    std::int64_t bytes = 0;
    for (const TensorSpec& spec : file.specs)
        bytes += spec.bytes();
    return bytes;
}

std::int64_t QuantizePlan::bytes() const {
    std::int64_t bytes = 0;
    for (const QuantizeShard& shard : shards)
        bytes += shard.bytes();
    return bytes;
}

Result<QuantizePlan> plan_quantize(const OpenModel& opened, const QuantizeScheme& scheme,
                                   std::int64_t max_shard_bytes, const InputRanges& ranges) {
    return Planner(opened, scheme, ranges).run(max_shard_bytes);
}

} // namespace lr::model
