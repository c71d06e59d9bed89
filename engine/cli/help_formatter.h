// The output of `--help` and `help`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace tally {

// The group of a command in the list of all commands.
const char* command_group(const std::string& command);

// Commands in groups, each with an example, and options as a person types them.
class HelpFormatter : public CLI::Formatter {
 public:
  // `program`: its name, for the examples.
  explicit HelpFormatter(std::string program) : program_(std::move(program)) {}

  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;
  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_positionals(const CLI::App* app) const override;
  std::string make_subcommands(const CLI::App* app, CLI::AppFormatMode mode) const override;
  std::string make_footer(const CLI::App* app) const override;
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override;
  std::string make_option_opts(const CLI::Option* option) const override;

 private:
  std::string program_;
};

}  // namespace tally
