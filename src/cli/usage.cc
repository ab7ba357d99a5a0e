// SPDX-License-Identifier: Apache-2.0
#include "cli/usage.h"

#include "cli/text_input.h"

#include <CLI/CLI.hpp>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>

namespace lr::cli {
namespace {

// "TEXT:{on,off}" is how the parser writes a type and its checks.
std::string value_of(const std::string& type) {
    const std::size_t colon = type.find(':');
    std::string choices = colon == std::string::npos ? "" : type.substr(colon + 1);
    if (choices.starts_with('{') && choices.ends_with('}')) {
        std::replace(choices.begin(), choices.end(), ',', '|');
        return choices.substr(1, choices.size() - 2);
    }
    const std::string name = type.substr(0, colon);
    return name == "INT" || name == "UINT" ? "N" : name == "FLOAT" ? "X" : name;
}

class HelpFormat : public CLI::Formatter {
  public:
    HelpFormat() { label("SUBCOMMAND", "COMMAND"); }

    std::string make_help(const CLI::App* app, std::string name,
                          CLI::AppFormatMode mode) const override {
        return CLI::detail::find_and_replace(CLI::Formatter::make_help(app, std::move(name), mode),
                                             "\n\n\n", "\n\n");
    }
    std::string make_option_opts(const CLI::Option* option) const override {
        if (option->get_type_size() == 0 || option->get_positional())
            return "";
        const std::string shown = option->get_default_str();
        return " " + value_of(option->get_type_name()) + (shown.empty() ? "" : " [" + shown + "]");
    }
};

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
    return app.get_subcommands([](const CLI::App*) { return true; });
}

std::string no_command(const CLI::App& app, const std::string& typed) {
    std::vector<std::string> names;
    for (const CLI::App* command : commands_of(app))
        names.push_back(command->get_name());
    const NearName near = nearest_name(typed, names);
    if (near.likely)
        return fmt::format("no command {}; did you mean {}?", typed, near.name);
    return fmt::format("no command {}; expected one of {}", typed, fmt::join(names, ", "));
}

std::string no_flag(const CLI::App& command, const std::string& word) {
    const std::string typed = word.substr(0, word.find('='));
    std::vector<std::string> names;
    for (const CLI::Option* option : command.get_options()) {
        for (const std::string& name : option->get_lnames())
            names.push_back("--" + name);
        for (const std::string& name : option->get_snames())
            names.push_back("-" + name);
    }
    const NearName near = nearest_name(typed, names);
    return fmt::format("no flag {}{}", typed,
                       near.likely ? fmt::format("; did you mean {}?", near.name) : "");
}

bool is_flag(const std::string& word) {
    return word.size() > 1 && word[0] == '-' && word != "--";
}

Status explain(const CLI::App& app, const std::string& name) {
    const auto print = [](const CLI::App& of, const std::string& shown) {
        const std::string text =
            of.get_formatter()->make_help(&of, shown, CLI::AppFormatMode::Normal);
        std::fputs(text.c_str(), stdout);
        return Status();
    };
    if (name.empty())
        return print(app, app.get_name());
    for (const CLI::App* command : commands_of(app))
        if (command->get_name() == name)
            return print(*command, app.get_name() + " " + name);
    return fail(Code::kInvalidArgument, "{}", no_command(app, name));
}

} // namespace

FlagGroup::FlagGroup(CLI::App& command, const char* heading)
    : command_(command), before_(command.option_defaults()->get_group()) {
    command_.option_defaults()->group(heading);
}

FlagGroup::~FlagGroup() {
    command_.option_defaults()->group(before_);
}

void set_help_format(CLI::App& app) {
    app.formatter(std::make_shared<HelpFormat>());
}

void add_help(CLI::App& app, Action& action) {
    auto name = std::make_shared<std::string>();
    CLI::App* help = app.add_subcommand("help", "Explain a command");
    help->add_option("COMMAND", *name, "Which one");
    help->callback(
        [&app, &action, name] { action = [&app, name] { return explain(app, *name); }; });
}

std::string usage_error(const CLI::App& app, std::string_view said) {
    if (const auto words = app.remaining(); !words.empty())
        return is_flag(words.front()) ? no_flag(app, words.front())
                                      : no_command(app, words.front());
    const auto chosen = app.get_subcommands();
    const auto words = chosen.empty() ? std::vector<std::string>() : chosen.front()->remaining();
    const auto flag = std::find_if(words.begin(), words.end(), is_flag);
    if (flag != words.end())
        return no_flag(*chosen.front(), *flag);
    const auto word = std::find_if(words.begin(), words.end(),
                                   [](const std::string& text) { return text != "--"; });
    if (word != words.end())
        return fmt::format("expected no more arguments, got \"{}\"", *word);
    return std::string(said.substr(0, said.find_last_not_of('\n') + 1));
}

} // namespace lr::cli
