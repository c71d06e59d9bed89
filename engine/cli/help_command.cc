// Help on commands, and the texts made from all of them: completion, the manual page, the
// reference.
#include <fmt/format.h>

#include "engine/base/command_spec.h"
#include "engine/base/terminal.h"
#include "engine/base/text.h"
#include "engine/check/glossary.h"
#include "engine/cli/application.h"
#include "engine/cli/prepare.h"
#include "engine/cli/version.h"

namespace tally {

ProgramSpec Application::program_spec(const std::string& name) const {
  ProgramSpec spec;
  spec.name = name;
  spec.version = kVersion;
  spec.brief = "run benchmark workflows and show their results";
  spec.summary = app_.get_description();
  spec.common = command_spec(app_, {}).options;
  for (const CLI::App* command : app_.get_subcommands(nullptr)) {
    if (command->get_group().empty()) continue;  // not in the help
    KnownValues known;
    if (command->get_name() == "help") {
      known["command"] = command_names();
      known["command"].emplace_back("exit-codes");
    }
    CommandSpec made = command_spec(*command, {command->get_name()}, known);
    made.options.erase(made.options.begin());  // --help, which is common
    spec.commands.push_back(std::move(made));
  }
  spec.sections = {
      {"exit status", exit_codes_in_full()},
      {"environment",
       "TALLY_TEMPLATES: folders of job scripts and platforms, before the installed ones, with "
       "colons between.\n\nTALLY_QUIET_CHECK=off: rows are not marked when other programs use the "
       "machine.\n\nNO_COLOR: no colours. JUBE_VERBOSE, JUBE_GROUP_NAME, "
       "JUBE_BENCHMARK_OUTPATH, JUBE_INCLUDE_PATH: as in JUBE.\n"},
  };
  spec.see_also = {"tally-train(1)", "sbatch(1)"};
  return spec;
}

std::string Application::completion(const std::string& name) const {
  const ProgramSpec spec = program_spec(name);
  if (shell_ == "zsh") return zsh_completion(spec);
  return shell_ == "fish" ? fish_completion(spec) : bash_completion(spec);
}

// A command, or a word of the workflow language.
int Application::help_on(const std::string& topic) const {
  if (const CLI::App* sub = find_command(app_, topic); sub != nullptr) {
    fmt::print("{}", sub->help(settings_.program));
    return kFine;
  }
  if (topic == "words" || (settings_.called_as_jube && topic == "ALL")) {
    fmt::print("{}\n", join(glossary_words(), "\n"));
    return kFine;
  }
  if (const std::string entry = glossary_entry(topic); !entry.empty()) {
    fmt::print("{}", entry);
    return kFine;
  }
  if (settings_.called_as_jube) {  // whose exit code is 0, too
    fmt::print("no help found for {}\nthere is help on: {}, {}\n", literal(topic),
               join(command_names(), ", "), join(glossary_words(), ", "));
    return kFine;
  }
  std::vector<std::string> known = command_names();
  for (const std::string& word : glossary_words()) known.push_back(word);
  std::string hint = did_you_mean(topic, known);
  if (hint.empty())
    hint = fmt::format("`{} help words` lists the words of the language", settings_.program);
  print_error(settings_, fmt::format("there is no command or word '{}'", topic), hint);
  return kBadInput;
}

void Application::add_help() {
  CLI::App* help = command("help", "help on a command", [this] {
    if (topic_.empty()) {  // app_.help() would print the help of `help`
      fmt::print("{}", app_.get_formatter()->make_help(&app_, settings_.program,
                                                       CLI::AppFormatMode::Normal));
      return kFine;
    }
    if (topic_ == "exit-codes") {
      fmt::print("{}", exit_codes_in_full());
      return kFine;
    }
    return help_on(topic_);
  });
  help->add_option("command", topic_,
                   "the command, exit-codes, words, or a word of the language: step, workpackage");
  CLI::App* complete =
      command("complete", "completion for a shell: eval \"$(tally complete bash)\"", [this] {
        fmt::print("{}", completion(completed_.empty() ? settings_.program : completed_));
        return kFine;
      });
  complete->add_option("shell", shell_, "bash, zsh or fish; default: bash")
      ->check(CLI::IsMember({"bash", "zsh", "fish"}))
      ->option_text("SHELL");
  complete->add_option("-c,--command-name", completed_, "the program's name")->option_text("NAME");
  command("manual", "the manual page, as `man` reads it", [this] {
    fmt::print("{}", manual_page(program_spec("tally")));
    return kFine;
  })->group("");
  command("update", "say where newer versions are", [this] {
    fmt::print("This is tally {}. It looks for nothing on the network; pull and build again.\n",
               kVersion);
    return settings_.called_as_jube ? kFailed : kFine;  // as JUBE does when it cannot ask
  })->group("");
}

}  // namespace tally
