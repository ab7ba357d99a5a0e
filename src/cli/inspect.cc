// SPDX-License-Identifier: Apache-2.0
//
// liverow inspect: what a model folder holds.
#include "cli/commands.h"
#include "core/buffer.h"
#include "core/clock.h"
#include "engine/weights.h"
#include "model/open.h"
#include "model/quant_check.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

namespace lr::cli {
namespace {

void print_config(const model::Config& c) {
    fmt::print("model       {}, {} layers ({} GDN + {} attention), hidden {}, vocabulary {}\n",
               c.model_type, c.layer_count(), c.count(model::LayerKind::kGdn),
               c.count(model::LayerKind::kAttention), c.hidden, c.vocab_size);
    fmt::print("attention   {} query / {} key-value heads of {}, rotary {} theta {:g}\n", c.q_heads,
               c.kv_heads, c.head_dim, c.rotary_dim, static_cast<double>(c.rope_theta));
    fmt::print("GDN         {} key / {} value heads of {} / {}, convolution {}\n", c.k_heads,
               c.v_heads, c.k_dim, c.v_dim, c.conv_kernel);
    if (c.moe())
        fmt::print("experts     {} of width {}, {} a token, shared expert {}\n", c.experts,
                   c.expert_width, c.experts_per_token, c.shared_expert_width);
    else
        fmt::print("FFN         dense, width {}\n", c.ffn_width);
}

void print_files(const model::OpenModel& opened) {
    for (const auto& file : opened.checkpoint->files())
        fmt::print("file        {} ({})\n", file.path(), format_bytes(file.file_bytes()));
    const model::ResolvedModel& r = opened.resolved;
    fmt::print("tensors     {} text, {} MTP, {} skipped; prefix \"{}\"; {} embeddings\n",
               r.text_tensors, r.mtp_tensors, r.skipped_tensors, r.prefix,
               r.model.tied() ? "tied" : "untied");
}

// What a module is called when formats are listed by groups.
std::string group_of(const model::Entry& entry) {
    using model::TensorKind;
    const auto ends = [&](std::string_view end) { return entry.name.ends_with(end); };
    switch (entry.kind) {
    case TensorKind::kEmbedding:
        return "embeddings";
    case TensorKind::kLmHead:
        return "lm_head";
    case TensorKind::kMixer:
        return entry.name.find("self_attn") != std::string::npos ? "attention" : "GDN";
    case TensorKind::kFfn:
        return "FFN";
    case TensorKind::kShared:
        return "shared expert";
    case TensorKind::kRouted:
        return "routed experts";
    case TensorKind::kPlainLinear:
        return ends("mlp.gate")             ? "router"
               : ends("shared_expert_gate") ? "shared expert gate"
               : ends("in_proj_ba")         ? "GDN in_proj_a, in_proj_b"
                                            : "MTP fc";
    case TensorKind::kNorm:
    case TensorKind::kGdnVector:
    case TensorKind::kConv:
        break;
    }
    return "norms, convolutions, A_log, dt_bias";
}

// "nvfp4-modelopt, W4A4 or W4A16": the stored format and what it lets activations be.
std::string format_text(const model::Entry& entry, const checkpoint::StoredWeight& weight) {
    using checkpoint::StoredFormat;
    switch (weight.format) {
    case StoredFormat::kPlain:
        return std::string(weight.weight->file_dtype);
    case StoredFormat::kFp8Block:
        return "fp8-block, a scale for 128 activations";
    case StoredFormat::kFp8Channel:
    case StoredFormat::kFp8Tensor:
        return fmt::format("{}, {} activations", stored_format_name(weight.format),
                           weight.input_scale ? "static" : "dynamic");
    case StoredFormat::kNvfp4ModelOpt:
    case StoredFormat::kNvfp4Compressed:
        return fmt::format("{}, {}", stored_format_name(weight.format),
                           entry.input_scale > 0 ? "W4A16 or W4A4" : "W4A16");
    }
    return "";
}

bool widened(const model::Entry& entry, const checkpoint::StoredWeight& weight) {
    return entry.format == model::WeightFormat::kPlain &&
           weight.format != checkpoint::StoredFormat::kPlain;
}

void print_formats(const model::ResolvedModel& resolved) {
    struct Group {
        std::set<std::int64_t> layers;
        std::int64_t tensors = 0;
        bool widened = false;
    };
    std::map<std::pair<std::string, std::string>, Group> groups;
    const auto& entries = resolved.model.entries();
    for (std::size_t i = 0; i < entries.size(); ++i)
        for (const checkpoint::StoredWeight& weight : resolved.stored[i]) {
            const std::string name = (entries[i].mtp ? "MTP " : "") + group_of(entries[i]);
            Group& group = groups[{name, format_text(entries[i], weight)}];
            group.layers.insert(entries[i].layer);
            group.widened = !entries[i].mtp && widened(entries[i], weight);
            ++group.tensors;
        }
    const char* title = "formats";
    for (const auto& [key, group] : groups) {
        const bool layered = *group.layers.begin() >= 0;
        fmt::print("{:<11} {}: {} ({} weight{}{}){}\n", title, key.first, key.second, group.tensors,
                   group.tensors == 1 ? "" : "s",
                   layered ? fmt::format(" in {} layer{}", group.layers.size(),
                                         group.layers.size() == 1 ? "" : "s")
                           : "",
                   group.widened ? "; widened to F32 at load" : "");
        title = "";
    }
}

void print_declared(const model::OpenModel& opened) {
    if (opened.declared)
        fmt::print("declared    {}{} by {}{}\n", opened.declared->method,
                   opened.declared->scheme.empty() ? "" : " " + opened.declared->scheme,
                   opened.declared->source,
                   opened.declared->kv.empty() ? "" : "; KV cache " + opened.declared->kv);
    const std::vector<model::KvScale>& scales = opened.resolved.kv_scales;
    if (!scales.empty()) {
        const auto [low, high] =
            std::minmax_element(scales.begin(), scales.end(),
                                [](const auto& a, const auto& b) { return a.value < b.value; });
        fmt::print("KV scales   {} from {} to {}; the KV cache is bf16 here and needs none\n",
                   scales.size(), low->value, high->value);
    } else if (opened.declared && !opened.declared->kv.empty()) {
        fmt::print("KV scales   none in the files; the KV cache is bf16 here and needs none\n");
    }
    for (const std::string& text : opened.disagreements)
        fmt::print("warning     {}\n", text);
}

std::string format_of(const model::Entry& entry, const checkpoint::StoredWeight& weight) {
    if (widened(entry, weight))
        return fmt::format("F32 <- {}", stored_format_name(weight.format));
    if (entry.format == model::WeightFormat::kPlain)
        return std::string(dtype_name(entry.dtype));
    return std::string(stored_format_name(weight.format));
}

void print_entries(const model::ResolvedModel& resolved) {
    fmt::print("\n{:<44} {:<22} {:<18} {:>12} {:>12}\n", "weight", "shape", "format", "bytes",
               "input scale");
    const auto& entries = resolved.model.entries();
    for (std::size_t i = 0; i < entries.size(); ++i)
        if (!entries[i].mtp)
            fmt::print("{:<44} {:<22} {:<18} {:>12} {:>12}\n", entries[i].name,
                       entries[i].shape.to_string(),
                       format_of(entries[i], resolved.stored[i].front()), entries[i].bytes(),
                       entries[i].input_scale > 0 ? fmt::format("{:g}", entries[i].input_scale)
                                                  : "-");
    for (const model::KvScale& scale : resolved.kv_scales)
        fmt::print("{} {:g}\n", scale.tensor, scale.value);
}

Status print_check(const model::OpenModel& opened) {
    const double start = monotonic_seconds();
    ThreadPool pool;
    LR_TRY_ASSIGN(const checkpoint::ScaleCounts counts, engine::check_scales(opened, pool));
    fmt::print("checked     {} scales ({}) in {:.2f} s: all make sense, {} are zero\n",
               counts.scales, format_bytes(counts.bytes), monotonic_seconds() - start,
               counts.zeros);
    return {};
}

void print_totals(const model::Model& model) {
    std::int64_t bytes = 0;
    for (const model::Entry& entry : model.entries())
        if (!entry.mtp)
            bytes += entry.bytes();
    fmt::print("parameters  {:.3f} M in {}\n", static_cast<double>(model.parameter_count()) / 1e6,
               format_bytes(bytes));
}

Status inspect(const std::string& folder, bool all, bool check) {
    LR_TRY_ASSIGN(const model::OpenModel opened, model::open_model(folder));
    print_config(opened.config());
    print_totals(opened.model());
    print_files(opened);
    print_formats(opened.resolved);
    print_declared(opened);
    if (check)
        LR_TRY(print_check(opened));
    if (all)
        print_entries(opened.resolved);
    else
        fmt::print("--weights lists every weight with shape, format and bytes\n");
    return {};
}

} // namespace

void add_inspect(CLI::App& app, Action& action) {
    struct Options {
        std::string model;
        bool weights = false, check = false;
    };
    auto options = std::make_shared<Options>();
    CLI::App* command = app.add_subcommand("inspect", "Show what a model folder holds");
    command->add_option("MODEL", options->model, "Model folder")->required();
    command->add_flag("-w,--weights", options->weights, "List every weight");
    command->add_flag("-c,--check", options->check,
                      "Read all scales of quantised weights too, as loading does");
    command->callback([&action, options] {
        action = [options] { return inspect(options->model, options->weights, options->check); };
    });
}

} // namespace lr::cli
