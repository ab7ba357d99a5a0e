// SPDX-License-Identifier: Apache-2.0
//
// liverow quantize: a quantised copy of a model folder.
#include "model/quantize.h"

#include "cli/calibrate.h"
#include "cli/commands.h"
#include "core/buffer.h"
#include "core/clock.h"
#include "core/log.h"

#include <CLI/CLI.hpp>

#include <memory>

namespace lr::cli {
namespace {

struct Options {
    std::string in, out, format, flavor, scales = "max";
    bool experts_only = false, json = false;
    model::QuantizeOptions quantize;
    CalibrateOptions calibrate; // no text: not asked for
    int threads = 0;
};

constexpr const char* kFooter =
    "What becomes what\n"
    "  fp8-block    all linears FP8, one scale for 128x128 weights     hf, compressed-tensors\n"
    "  fp8-channel  all linears FP8, one scale a row                   compressed-tensors\n"
    "  nvfp4        all linears 4 bits, one scale for 16 weights       modelopt, "
    "compressed-tensors\n"
    "  nvfp4-mixed  routed experts as nvfp4, other linears FP8         modelopt\n"
    "               with one scale a matrix\n"
    "\"All linears\" are the projections of attention and gated delta net, FFN, shared and routed\n"
    "experts. Router, gates, in_proj_a/b, convolution, norms, embeddings, lm_head, vision and MTP\n"
    "are copied as they are, and so are tokenizer, template and generation config.\n"
    "\n"
    "Activations: the FP8 formats have none to store, theirs are scaled as they come. NVFP4 "
    "copies\n"
    "are for plain activations (W4A16) unless --calibrate gives a text: then IN is run over it, "
    "and\n"
    "each matrix gets a scale for the largest input seen (W4A4; FP8 of nvfp4-mixed: static). All\n"
    "experts of a layer share theirs. Control tokens in the text are read as such.\n"
    "\n"
    "An interrupted run leaves complete weight files, a note and no config.json; the same command\n"
    "goes on from there. The table at the end says, for each kind of module, how far the copy is\n"
    "from the input: rms is |w - copy| over |w|; cut is the share of weights beyond the largest\n"
    "code. Measure what it costs the model with `liverow ppl`.\n"
    "\n"
    "Examples:\n"
    "  liverow quantize models/tiny tiny-fp8 --format fp8-block\n"
    "  liverow quantize models/tiny tiny-fp4 --format nvfp4 --experts-only --scales mse\n"
    "  liverow quantize models/tiny tiny-w4a4 --format nvfp4 --calibrate text.txt\n"
    "  liverow ppl tiny-w4a4 text.txt --activations quant";

void print_table(const model::QuantizeReport& report) {
    fmt::print("{:<15} {:<11} {:>9} {:>9} {:>9} {:>10} {:>8}  {}\n", "kind", "format", "matrices",
               "rms", "max", "cosine", "cut", "worst module (rms)");
    for (const model::QuantizeReport::Kind& kind : report.kinds) {
        double worst = 0;
        for (const model::QuantizeReport::Module& module : report.modules)
            if (module.name == kind.worst)
                worst = module.error.relative_rms();
        fmt::print("{:<15} {:<11} {:>9} {:>8.3f}% {:>9.2e} {:>10.7f} {:>7.3f}%  {} ({:.3f}%)\n",
                   kind.name, numerics::weight_format_name(kind.format), kind.error.matrices,
                   100 * kind.error.relative_rms(), kind.error.max_abs, kind.error.cosine(),
                   100 * kind.error.saturated_share(), kind.worst, 100 * worst);
    }
}

// One object: what was made, and the errors of every kind and module.
Json report_json(const Options& options, const model::QuantizeReport& report, double seconds) {
    const auto row = [](const auto& part, std::vector<JsonMember> members) {
        members.insert(members.begin(), {"name", Json(part.name)});
        members.push_back({"format", Json(numerics::weight_format_name(part.format))});
        members.push_back({"error", model::quantize_error_to_json(part.error)});
        return Json::object(std::move(members));
    };
    JsonArray kinds, modules;
    for (const model::QuantizeReport::Kind& kind : report.kinds)
        kinds.push_back(row(kind, {{"worst", Json(kind.worst)}}));
    for (const model::QuantizeReport::Module& module : report.modules)
        modules.push_back(row(module, {{"kind", Json(module.kind)}}));
    const model::QuantizeScheme& scheme = options.quantize.scheme;
    return Json::object({{"in", Json(options.in)},
                         {"out", Json(options.out)},
                         {"format", Json(model::quantize_format_name(scheme.format))},
                         {"flavor", Json(model::quantize_flavor_name(scheme.flavor))},
                         {"experts_only", Json(scheme.experts_only)},
                         {"scales", Json(options.scales)},
                         {"calibrated", Json(scheme.calibrated)},
                         {"tensors", Json(report.tensors)},
                         {"files", Json(report.files)},
                         {"kept_files", Json(report.kept_files)},
                         {"input_bytes", Json(report.input_bytes)},
                         {"bytes", Json(report.bytes)},
                         {"seconds", Json(seconds)},
                         {"kinds", Json(std::move(kinds))},
                         {"modules", Json(std::move(modules))}});
}

// What cannot be quantised is refused before the text is run, which takes longer.
Result<model::InputRanges> measure_inputs(const Options& options) {
    LR_TRY_ASSIGN(const model::OpenModel opened, model::open_model(options.in));
    model::QuantizeScheme uncalibrated = options.quantize.scheme;
    uncalibrated.calibrated = false;
    const auto plan = model::plan_quantize(opened, uncalibrated, options.quantize.max_shard_bytes);
    if (!plan)
        return fail(plan.error());
    CalibrateOptions calibration = options.calibrate;
    calibration.threads = options.threads;
    return calibrate(opened, calibration);
}

Status quantize(Options options) {
    const auto scales =
        options.scales == "mse" ? numerics::BlockScales::kMse : numerics::BlockScales::kAmax;
    LR_TRY_ASSIGN(options.quantize.scheme,
                  model::quantize_scheme(options.format, options.flavor, options.experts_only,
                                         scales, !options.calibrate.text.empty()));
    if (options.quantize.scheme.calibrated) {
        LR_TRY_ASSIGN(options.quantize.ranges, measure_inputs(options));
    }
    const Stopwatch watch;
    ThreadPool pool(options.threads);
    LR_TRY_ASSIGN(const model::QuantizeReport report,
                  model::quantize_checkpoint(options.in, options.out, options.quantize, pool));
    const double seconds = watch.seconds();
    log_info("{}: {} ({}), {} tensors, {} in {} file{}, {:.1f} % of {}, {:.1f} s, {} threads",
             options.out, options.format,
             model::quantize_flavor_name(options.quantize.scheme.flavor), report.tensors,
             format_bytes(report.bytes), report.files, report.files == 1 ? "" : "s",
             100.0 * static_cast<double>(report.bytes) / static_cast<double>(report.input_bytes),
             format_bytes(report.input_bytes), seconds, pool.size());
    if (options.json)
        fmt::print("{}\n", to_json_string(report_json(options, report, seconds)));
    else
        print_table(report);
    return {};
}

} // namespace

void add_quantize(CLI::App& app, Action& action) {
    auto options = std::make_shared<Options>();
    CLI::App* command = app.add_subcommand("quantize", "Write a quantised copy of a model folder");
    command->add_option("IN", options->in, "Model folder in BF16, F16 or F32")->required();
    command->add_option("OUT", options->out, "Folder to write: new, empty, or interrupted before")
        ->required();
    command->add_option("--format", options->format, "Of the quantised weights, see below")
        ->check(CLI::IsMember(model::quantize_format_names()))
        ->required();
    command
        ->add_option("--flavor", options->flavor,
                     "Whose names and configs to write; by default the first of the format's")
        ->check(CLI::IsMember(model::quantize_flavor_names()));
    command->add_flag("--experts-only", options->experts_only,
                      "Leave attention and gated delta net as they are");
    command
        ->add_option(
            "--scales", options->scales,
            "NVFP4 block scales: max (largest weight / 6), or mse: of eleven scales around "
            "it the one with the least squared error, some three times slower")
        ->check(CLI::IsMember({"max", "mse"}))
        ->capture_default_str();
    CLI::Option* text = command->add_option("--calibrate", options->calibrate.text,
                                            "Text file, UTF-8: run it to find scales "
                                            "of activations (nvfp4, nvfp4-mixed)");
    command
        ->add_option("--calibrate-tokens", options->calibrate.tokens,
                     "Tokens to run, of the beginning of the text")
        ->check(CLI::PositiveNumber)
        ->needs(text)
        ->capture_default_str();
    command
        ->add_option("--shard-bytes", options->quantize.max_shard_bytes,
                     "Bytes of a weight file before the next is begun")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    command->add_flag("--json", options->json,
                      "Print one JSON object with the errors of every module");
    command->add_option("--threads", options->threads, "Threads; 0: one for each processor")
        ->check(CLI::Range(0, 4096))
        ->capture_default_str();
    command->footer(kFooter);
    command->callback([&action, options] { action = [options] { return quantize(*options); }; });
}

} // namespace lr::cli
