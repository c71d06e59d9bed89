#include "engine/cli/help_formatter.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <string_view>

#include "engine/base/text.h"
#include "engine/cli/commands.h"
#include "engine/cli/option_parsing.h"

namespace tally {
namespace {

struct CommandHelp {
  const char *name, *group, *example;
};
constexpr const char* kRun = "Run";
constexpr const char* kResults = "Look at results";
constexpr const char* kRuns = "Look after runs";
constexpr const char* kFiles = "Write and check files";
constexpr const char* kOther = "Help";
constexpr std::array kCommands = {
    CommandHelp{"run", kRun, "run pi.yaml --tag slurm"},
    CommandHelp{"fleet", kRun, "fleet fleet.yaml --nodes node[01-16]"},
    CommandHelp{"continue", kRun, "continue pi_run --failed"},
    CommandHelp{"watch", kRun, "watch pi_run"},
    CommandHelp{"meter", kRun, "meter -- ./program --its-option"},
    CommandHelp{"result", kResults, "result pi_run --id last"},
    CommandHelp{"analyse", kResults, "analyse pi_run"},
    CommandHelp{"plot", kResults, "plot pi_run -x terms -y seconds --out pi.svg"},
    CommandHelp{"report", kResults, "report pi_run --out pi.html"},
    CommandHelp{"compare", kResults, "compare pi_run/000003 pi_run/000007"},
    CommandHelp{"archive", kResults, "archive pi_run/000003 -o pi.zip"},
    CommandHelp{"verify", kResults, "verify pi.zip"},
    CommandHelp{"history", kResults, "history pi_run --metric seconds"},
    CommandHelp{"info", kRuns, "info pi_run --id last"},
    CommandHelp{"status", kRuns, "status pi_run"},
    CommandHelp{"log", kRuns, "log pi_run"},
    CommandHelp{"output", kRuns, "output pi_run -w 3 -d"},
    CommandHelp{"comment", kRuns, "comment 'after the update' pi_run"},
    CommandHelp{"remove", kRuns, "remove pi_run --id 3"},
    CommandHelp{"validate", kFiles, "validate pi.yaml"},
    CommandHelp{"new", kFiles, "new pi -- ./pi 1000000"},
    CommandHelp{"show", kFiles, "show pi.yaml"},
    CommandHelp{"tag", kFiles, "tag pi.yaml"},
    CommandHelp{"script", kFiles, "script pi.yaml --tag slurm --out scripts"},
    CommandHelp{"reference", kFiles, "reference"},
    CommandHelp{"platform", kFiles, "platform detect -o mycluster.yaml"},
    CommandHelp{"help", kOther, "help run"},
    CommandHelp{"doctor", kOther, "doctor"},
    CommandHelp{"complete", kOther, "complete bash"},
};

const CommandHelp* find_help(const std::string& command) {
  for (const CommandHelp& one : kCommands)
    if (command == one.name) return &one;
  return nullptr;
}

std::string in_capitals(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

}  // namespace

const char* command_group(const std::string& command) {
  const CommandHelp* help = find_help(command);
  return help == nullptr ? kOther : help->group;
}

std::string HelpFormatter::make_help(const CLI::App* app, std::string name,
                                     CLI::AppFormatMode mode) const {
  std::string text = CLI::Formatter::make_help(app, std::move(name), mode);
  replace_all(text, "\n\n\n", "\n\n");
  return text;
}

std::string HelpFormatter::make_usage(const CLI::App* app, std::string name) const {
  std::string words;
  for (const CLI::Option* option : app->get_options()) {
    if (!option->get_positional() || option->get_group().empty()) continue;
    const std::string& value = option->get_option_text();
    words += " " + (value.empty() ? in_capitals(option->get_name(true)) : value);
  }
  if (app->get_parent() == nullptr) words = " COMMAND ...";
  return fmt::format("Usage: {}{} [options]\n", name, words);
}

// The usage line has them, and what they are stands here.
std::string HelpFormatter::make_positionals(const CLI::App* app) const {
  std::string text;
  for (const CLI::Option* option : app->get_options()) {
    if (option->get_positional() && !option->get_group().empty()) text += make_option(option, true);
  }
  return text.empty() ? text : "\n" + text;
}

std::string HelpFormatter::make_subcommands(const CLI::App* app, CLI::AppFormatMode) const {
  std::string text;
  for (const char* group : {kFiles, kRun, kResults, kRuns, kOther}) {
    std::string lines;
    const char* example = nullptr;
    for (const CommandHelp& one : kCommands) {
      if (std::string_view(one.group) != group) continue;
      const CLI::App* command = find_command(*app, one.name);
      if (command == nullptr || command->get_group().empty()) continue;
      lines += make_subcommand(command);
      if (example == nullptr) example = one.example;
    }
    if (example != nullptr)
      text += fmt::format("\n{}, as `{} {}`:\n{}", group, program_, example, lines);
  }
  return text;
}

std::string HelpFormatter::make_footer(const CLI::App* app) const {
  const CommandHelp* help = app->get_parent() == nullptr ? nullptr : find_help(app->get_name());
  const std::string footer = CLI::Formatter::make_footer(app);
  return help == nullptr ? footer
                         : fmt::format("Example: {} {}\n\n{}", program_, help->example, footer);
}

std::string HelpFormatter::make_option_name(const CLI::Option* option, bool is_positional) const {
  if (is_positional)
    return option->get_option_text().empty() ? in_capitals(option->get_name(true)) : "";
  std::string name;
  for (const std::string& each : split_strip(option->get_name(false, true), ",")) {
    const size_t brace = each.find('{');  // "--no-wait{false}": the opposite
    const char* between = brace == std::string::npos ? ", " : " | ";
    name += (name.empty() ? "" : between) + each.substr(0, brace);
  }
  return name;
}

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  const std::string before = option->get_positional() && !option->nonpositional() ? "" : " ";
  if (!option->get_option_text().empty()) return before + option->get_option_text();
  if (option->get_items_expected_max() == 0 || option->get_positional()) return "";
  const std::string type = option->get_type_name();
  return before + (type == "INT" || type == "UINT" || type == "FLOAT" ? "N" : "TEXT");
}

namespace {

struct ExitCode {
  int code;
  const char* brief;
  const char* full;
};

constexpr ExitCode kCodes[] = {
    {kFine, "all went well", "Every workpackage finished, and every reference was met."},
    {kFailed, "something failed",
     "A workpackage failed, was lost or waits; the run was interrupted; a result could not be "
     "written. `result` and `report` only show that a workpackage failed: their code is 0. "
     "`verify`: the "
     "archive has changed, its tables do not follow from its samples, or its signature does not "
     "hold."},
    {kBadInput, "wrong input or command line",
     "Nothing was started: the input file, the command line or the run that it names is wrong."},
    {kReferenceMissed, "a reference was missed or a result regressed",
     "A table's value is not what its `reference` expects, or is not there. Also where "
     "workpackages "
     "failed. `compare`: a row regressed, or with --strict is unclear; --null found a difference. "
     "`fleet`: a machine or a link is slow or "
     "wrong. `verify --replay`: a value does not agree."},
};

}  // namespace

std::string exit_codes_in_short() {
  std::string text;
  for (const ExitCode& code : kCodes)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", code.code, code.brief);
  return text;
}

std::string exit_codes_in_full() {
  std::string text = "Exit codes\n";
  for (const ExitCode& code : kCodes)
    text += fmt::format("  {}  {}. {}\n", code.code, code.brief, code.full);
  return text +
         "Called by the name jube: JUBE's. 0, also where commands failed; 1 for any error; 2 for a "
         "command line\nthat cannot be understood.\n";
}

}  // namespace tally
