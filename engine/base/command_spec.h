// The words that a program's command line takes, as data: the one source of its completions and its
// manual page.
//
// Both programs use it: this header is shared with the trainer.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace tally {

struct OptionSpec {
  enum class Takes { nothing, word, file, folder };
  std::vector<std::string> names;    // "-t", "--tag"
  std::vector<std::string> choices;  // the values that it takes, if these are all there are
  Takes takes = Takes::nothing;
  std::string value;  // "NAME=VALUE", as the help shows it
  std::string initial;
  std::string help;
  std::string group;
};

struct PositionalSpec {
  std::string value;  // "FILE ..."
  std::string help;
  std::vector<std::string> choices;
};

struct CommandSpec {
  // The names of the command; "" stands for the program without a command.
  std::vector<std::string> names;
  std::string summary;
  std::vector<OptionSpec> options;
  std::vector<PositionalSpec> positionals;
};

struct ManualSection {
  std::string title;
  std::string text;  // lines; a line that begins with two blanks is printed as it is
};

struct ProgramSpec {
  std::string name, version;
  std::string brief;  // "runs benchmark workflows", for the page's NAME
  std::string summary;
  std::vector<OptionSpec> common;  // with every command
  std::vector<CommandSpec> commands;
  std::vector<ManualSection> sections;
  std::vector<std::string> see_also;  // "tally-train(1)"
};

// The values of options that the parser does not list itself: {"--precision", {"fp32", ...}}.
using KnownValues = std::map<std::string, std::vector<std::string>>;

// The options and positionals of one command, without those that its help does not show.
CommandSpec command_spec(const CLI::App& app, std::vector<std::string> names,
                         const KnownValues& known = {});

// A program's manual page, roff for `man`: name, synopsis, options, commands with their options,
// and the program's sections.
std::string manual_page(const ProgramSpec& program);

// Completion scripts for shells. Each completes commands, options and their values, and files and
// folders where these belong.
std::string bash_completion(const ProgramSpec& program);
std::string zsh_completion(const ProgramSpec& program);
std::string fish_completion(const ProgramSpec& program);

}  // namespace tally
