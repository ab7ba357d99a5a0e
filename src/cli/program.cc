// SPDX-License-Identifier: Apache-2.0
#include "cli/program.h"

#include "cli/commands.h"
#include "cli/tools/commands.h"
#include "cli/usage.h"
#include "core/log.h"
#include "core/notices.h"
#include "core/version.h"

#include <CLI/CLI.hpp>

#include <cstdio>

namespace lr::cli {
namespace {

constexpr int kExitUsage = 2, kExitFailure = 1;

std::string version_text() {
    const std::string cuda = *kCudaArchitectures ? fmt::format("CUDA for {}", kCudaArchitectures)
                                                 : std::string("no CUDA");
    return fmt::format("liverow {} ({}, {}, {})", kVersion, kBuildType, kCompiler, cuda);
}

// What CLI11 found wrong with the flags, as one line and where to read more.
int report_usage(const CLI::App& app, const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) // --help, --version
        return app.exit(error);
    log_error("{}", usage_error(app, error.what()));
    std::string command;
    for (auto chosen = app.get_subcommands(); !chosen.empty();
         chosen = chosen.front()->get_subcommands())
        command += chosen.front()->get_name() + " ";
    std::fprintf(stderr, "usage: liverow %s--help\n", command.c_str());
    return kExitUsage;
}

} // namespace

int run_program(int argc, const char* const* argv) {
    CLI::App app("liverow: runs models of the Qwen3.5 family.\n"
                 "First try:  liverow run models/tiny -p \"Once upon a time\"",
                 "liverow");
    app.set_version_flag("--version", version_text());
    bool licenses = false;
    app.add_flag("--licenses", licenses, "Print the licences of liverow and of what it contains");
    app.require_subcommand(0, 1);
    app.footer("Each command explains its flags: liverow COMMAND --help");
    set_help_format(app);

    Action action;
    add_run(app, action);
    add_chat(app, action);
    add_inspect(app, action);
    add_tokenize(app, action);
    add_ppl(app, action);
    add_score(app, action);
    add_quantize(app, action);
    add_synth(app, action);
    add_bench(app, action);
    add_verify(app, action);
    add_trace(app, action);
    add_experts(app, action);
    add_graph(app, action);
    add_devices(app, action);
    add_help(app, action);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return report_usage(app, error);
    }
    if (licenses) {
        std::fwrite(kNotices.data(), 1, kNotices.size(), stdout);
        return 0;
    }
    if (!action) {
        std::fputs(app.help().c_str(), stdout);
        return kExitUsage;
    }
    Status status = action();
    if (status.ok() && (std::fflush(stdout) != 0 || std::ferror(stdout) != 0))
        status = fail(Code::kInternal, "standard output: not everything could be written");
    if (status.ok())
        return 0;
    log_error("{}", status.message());
    return status.code() == Code::kInvalidArgument ? kExitUsage : kExitFailure;
}

} // namespace lr::cli
