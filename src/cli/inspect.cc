// SPDX-License-Identifier: Apache-2.0
//
// liverow inspect: what a model folder holds.
#include "cli/commands.h"
#include "core/buffer.h"
#include "model/open.h"

#include <CLI/CLI.hpp>

#include <cstdio>

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
    for (const std::string& text : r.disagreements)
        fmt::print("warning     {}\n", text);
}

std::string format_of(const model::Entry& entry) {
    if (entry.format == model::WeightFormat::kPlain)
        return std::string(dtype_name(entry.dtype));
    return std::string(numerics::weight_format_name(entry.format));
}

void print_entries(const model::Model& model) {
    fmt::print("\n{:<44} {:<22} {:<10} {:>12}\n", "weight", "shape", "format", "bytes");
    for (const model::Entry& entry : model.entries())
        if (!entry.mtp)
            fmt::print("{:<44} {:<22} {:<10} {:>12}\n", entry.name, entry.shape.to_string(),
                       format_of(entry), entry.bytes());
}

void print_totals(const model::Model& model) {
    std::int64_t bytes = 0;
    for (const model::Entry& entry : model.entries())
        if (!entry.mtp)
            bytes += entry.bytes();
    fmt::print("parameters  {:.3f} M in {}\n", static_cast<double>(model.parameter_count()) / 1e6,
               format_bytes(bytes));
}

Status inspect(const std::string& folder, bool all) {
    LR_TRY_ASSIGN(const model::OpenModel opened, model::open_model(folder));
    print_config(opened.config());
    print_totals(opened.model());
    print_files(opened);
    if (all)
        print_entries(opened.model());
    else
        fmt::print("--weights lists every weight with shape, format and bytes\n");
    return {};
}

} // namespace

void add_inspect(CLI::App& app, Action& action) {
    struct Options {
        std::string model;
        bool weights = false;
    };
    auto options = std::make_shared<Options>();
    CLI::App* command = app.add_subcommand("inspect", "Show what a model folder holds");
    command->add_option("MODEL", options->model, "Model folder")->required();
    command->add_flag("-w,--weights", options->weights, "List every weight");
    command->callback([&action, options] {
        action = [options] { return inspect(options->model, options->weights); };
    });
}

} // namespace lr::cli
