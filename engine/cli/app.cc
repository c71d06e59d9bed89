#include "engine/cli/application.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <new>
#include <string_view>
#include <system_error>

#include "engine/base/files.h"
#include "engine/base/terminal.h"
#include "engine/base/text.h"
#include "engine/cli/help_formatter.h"
#include "engine/cli/option_parsing.h"
#include "engine/cli/prepare.h"
#include "engine/cli/version.h"
#include "engine/results/read/mapped_faults.h"

namespace tally {
namespace {

// Scripts that ask for JUBE's version get the version whose language Tally reads.
void print_version(const Settings& settings) {
  if (settings.called_as_jube) {
    fmt::print("JUBE, version {} (tally {})\n", kJubeVersion, kVersion);
  } else {
    fmt::print("tally {}\n", kVersion);
  }
}

// Whether all output was written. A table on a full disk is incomplete, which is an error. A reader
// that has gone away (`| head`) is not.
bool output_written(const Settings& settings) {
  std::cout.flush();
  errno = 0;
  const bool flushed = std::fflush(stdout) == 0;
  const int why = errno;
  if (flushed && std::ferror(stdout) == 0) return true;
  pollfd reader{STDOUT_FILENO, POLLOUT, 0};
  if (why == EPIPE || (::poll(&reader, 1, 0) == 1 && (reader.revents & POLLERR) != 0)) return true;
  print_error(settings, fmt::format("cannot write to standard output{}",
                                    why == 0 ? "" : fmt::format(": {}", std::strerror(why))));
  return false;
}

}  // namespace

Application::Application(Settings settings, const std::string& name, const std::string& word)
    : settings_(std::move(settings)),
      app_(
          "Runs benchmark workflows: reads a declarative file, expands its parameter space, runs "
          "or "
          "submits every point, reads the output and prints the tables.",
          name) {
  app_.formatter(std::make_shared<HelpFormatter>(settings_.program));
  app_.set_help_flag("-h,--help", "show this help and exit");
  app_.add_flag("-V,--version", version_, "show the version and exit");
  app_.add_flag(
      "-v,--verbose", verbose_,
      "say more: a line for each workpackage that ends, every workpackage of a plan; -vv: what "
      "commands print, too");
  app_.add_flag("-q,--quiet", settings_.quiet, "say less: tables, warnings and failures only");
  app_.add_option("--color", color_, "auto (on a terminal, unless NO_COLOR is set), always, never")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->option_text("WHEN");
  app_.footer("Exit codes: " + exit_codes_in_short() + "; see `" + name + " help exit-codes`.");
  app_.add_flag("--no-exec", settings_.no_exec,
                "execute nothing that the input names: values by python, perl and the shell are "
                "errors");
  app_.add_flag("--strict", settings_.strict, "unknown keys and other warnings are errors");
  // JUBE's dry run. `run` is the only changing command that has one.
  app_.add_flag("--debug", debug_, "as `run -n`; accepted for JUBE's command lines")->group("");
  for (const char* ignored : {"--force", "--devel"}) {
    app_.add_flag(ignored, ignored_, "accepted for JUBE's command lines")->group("");
  }
  app_.require_subcommand(0, 1);
  app_.fallthrough();
  add_commands(word);
  std::vector<CLI::App*> all = app_.get_subcommands(nullptr);
  all.push_back(&app_);
  for (CLI::App* sub : all) {
    for (CLI::Option* option : sub->get_options()) option->transform(without_mark);
  }
}

// A command has up to thirty options. Making those of all commands takes as long as showing the
// state of a run.
void Application::add_commands(const std::string& word) {
  struct Some {
    Words names;
    void (Application::*add)();
    bool in_jube = true;
  };
  const std::vector<Some> all = {
      {{"run"}, &Application::add_run},
      {{"fleet"}, &Application::add_fleet, false},
      {{"continue"}, &Application::add_continue},
      {{"watch"}, &Application::add_watch},
      {{"analyse", "result"}, &Application::add_results},
      {{"plot"}, &Application::add_plot},
      {{"report"}, &Application::add_report},
      {{"compare"}, &Application::add_compare, false},
      {{"archive", "verify"}, &Application::add_archive, false},
      {{"history"}, &Application::add_history, false},
      {{"meter"}, &Application::add_meter, false},
      {{"doctor"}, &Application::add_doctor, false},
      {{"platform"}, &Application::add_platform, false},
      {{"new"}, &Application::add_new, false},
      {{"reference"}, &Application::add_reference},
      {{"info", "status", "log", "output"}, &Application::add_info},
      {{"comment", "remove"}, &Application::add_manage},
      {{"validate", "tag", "show", "script"}, &Application::add_files},
      {{}, &Application::add_help},
  };
  const auto is_here = [&](const Some& some) { return some.in_jube || !settings_.called_as_jube; };
  for (const Some& some : all) {
    const bool named = contains(some.names, word);
    if (named && is_here(some)) return (this->*some.add)();
  }
  for (const Some& some : all) {
    if (is_here(some)) (this->*some.add)();
  }
}

int Application::run(int argc, char** argv) {
  try {
    Words words;  // CLI11 takes them from the end
    // The words behind "--" belong to another program.
    const auto end = std::find(argv, argv + argc, std::string_view("--")) - argv;
    behind_ = static_cast<size_t>(std::max<std::ptrdiff_t>(argc - end - 1, 0));
    for (int i = argc - 1; i > 0; --i) {
      const std::string word = i < end ? unabbreviated(app_, argc, argv, argv[i]) : argv[i];
      // CLI11 would take the next word for the value of `--comment=`.
      const bool empty = i < end && word.size() > 3 && starts_with(word, "--") &&
                         word.find('=') == word.size() - 1;
      if (empty) words.emplace_back();
      words.push_back(with_mark(empty ? word.substr(0, word.size() - 1) : word));
    }
    app_.parse(words);
  } catch (const CLI::CallForHelp&) {
    const CLI::App* shown = chosen();
    fmt::print("{}", shown != nullptr ? shown->help(settings_.program) : app_.help());
    return kFine;
  } catch (const CLI::ParseError& error) {
    complain(settings_, app_, argc, argv, error);
    return kBadInput;
  }
  if (verbose_ > 0) settings_.verbose = verbose_;  // otherwise $JUBE_VERBOSE applies
  if (color_ == "always") settings_.color = Settings::Color::always;
  if (color_ == "never") settings_.color = Settings::Color::never;
  settings_.hide_animation = settings_.hide_animation || settings_.quiet;
  if (version_) {
    print_version(settings_);
    return kFine;
  }
  if (!action_) {
    fmt::print("{}", app_.help());
    return kFine;
  }
  if (debug_ && !debug_allowed()) return kBadInput;
  const int code = action_();
  // JUBE's exit code 2 comes from argparse and only means an error in the command line itself.
  return settings_.called_as_jube && code == kBadInput && !usage_error_ ? kFailed : code;
}

bool Application::debug_allowed() {
  const std::string name = chosen()->get_name();
  run_.dry_run = true;
  for (const char* changing : {"continue", "watch", "remove", "comment", "script"}) {
    if (name != changing) continue;
    print_error(settings_, fmt::format("--debug: '{}' has no dry run; nothing was done", name),
                "leave --debug out");
    return false;
  }
  return true;
}

Words Application::command_names() const {
  Words names;
  for (const CLI::App* command : app_.get_subcommands(nullptr))
    names.push_back(command->get_name());
  return names;
}

const CLI::App* Application::chosen() const {
  std::vector<CLI::App*> commands = app_.get_subcommands();
  return commands.empty() ? nullptr : commands.front();
}

CLI::App* Application::command(const std::string& name, const std::string& what,
                               std::function<int()> action) {
  CLI::App* sub = app_.add_subcommand(name, what);
  sub->fallthrough();
  sub->group(command_group(name));
  sub->set_help_flag("-h,--help", "show this help and exit");
  sub->callback([this, action = std::move(action)] { action_ = action; });
  return sub;
}

void Application::list(CLI::App* sub, const std::string& names, Words& into,
                       const std::string& what, const std::string& word) {
  sub->add_option(names, into, what)->option_text(word + " ...");
}

void Application::input_options(CLI::App* sub, InputArgs& input) {
  list(sub, "-t,--tag", input.tags, "tags to set", "TAG");
  list(sub, "--include-path", input.include_path, "folders in which included files are looked for",
       "DIR");
  sub->add_option("--set", input.set, "gives a parameter another value; may be repeated")
      ->allow_extra_args(false)
      ->option_text("NAME=VALUE");
}

void Application::planned_options(CLI::App* sub, InputArgs& input) {
  input_options(sub, input);
  sub->add_option("--max-workpackages", settings_.max_workpackages,
                  fmt::format("refuse a step of more; {} without it", most_points))
      ->check(at_least(1))
      ->option_text("N");
}

void Application::runs_options(CLI::App* sub) {
  sub->add_option("directory", directories_,
                  "folder of the runs, one run's folder, or the input file; default: here")
      ->option_text("DIR");
  list(sub, "-i,--id", runs_.ids,
       "runs: numbers, -1 for the last one, last, all; default: the newest", "ID");
}

bool Application::resolve_runs(const std::vector<Words*>& lists) {
  if (directories_.empty()) {
    give_back(
        {&runs_.ids}, [](const std::string& word) { return !is_id(word); }, &directories_);
    give_back(
        lists, [](const std::string& word) { return exists(word) && !is_id(word); }, &directories_);
  }
  if (directories_.size() > 1) {
    usage_error_ = true;
    print_error(settings_, "one directory is expected, not " + join(directories_, " "));
    return false;
  }
  if (!directories_.empty()) runs_.directory = directories_.front();
  return true;
}

bool Application::resolve_files(const std::string& name, Words& files, InputArgs& input,
                                std::vector<Words*> lists) {
  lists.push_back(&input.tags);
  lists.push_back(&input.include_path);
  auto takes = [](const std::string& word) { return is_file(word); };
  if (files.empty()) give_back(lists, takes, &files);
  if (!files.empty()) return true;
  usage_error_ = true;
  print_error(settings_, fmt::format("{} needs an input file", name),
              fmt::format("{} {} bench.yaml", settings_.command, name));
  return false;
}

int run_application(int argc, char** argv, const StepKinds& kinds) {
  prepare_standard_streams();
  Settings settings;
  settings.kinds = &kinds;
  std::string path = argc > 0 ? argv[0] : "tally";
  settings.program = path.substr(path.rfind('/') + 1);
  settings.command = shell_quote(path);
  settings.called_as_jube = settings.program == "jube";
  settings.programs = program_directory();
  const char* shell = std::getenv("JUBE_EXEC_SHELL");
  if (shell != nullptr && *shell != '\0') settings.shell = shell;
  if (const char* verbose = std::getenv("JUBE_VERBOSE")) settings.verbose = std::atoi(verbose);
  if (argc == 2 && (std::strcmp(argv[1], "--version") == 0 || std::strcmp(argv[1], "-V") == 0)) {
    print_version(settings);
    return output_written(settings) ? kFine : kFailed;
  }
  Application application(settings, settings.program, argc > 1 ? argv[1] : "");
  Words names = application.command_names();
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (word == "--color") ++i;  // the only option before a command that has a value
    if (!word.empty() && word[0] == '-') continue;
    if (!contains(names, word)) {
      std::string hint = did_you_mean(word, names);
      if (hint.empty() && is_file(word)) {
        hint = fmt::format("did you mean `{} run {}`?", settings.command, shell_quote(word));
      }
      print_error(settings, fmt::format("there is no command '{}'", word),
                  hint.empty() ? "the commands are " + join(names, ", ") : hint);
      return kBadInput;
    }
    break;
  }
  std::vector<char*> words(argv, argv + argc);
  std::string last;
  if (settings.called_as_jube && keep_last_tags(&words, is_file, &last)) {
    fmt::print(stderr, "note: -t is given more than once: as in JUBE only the last counts ({})\n",
               last);
  }
  report_faults_of_mapped_files();
  int code = kFailed;
  try {
    code = application.run(static_cast<int>(words.size()), words.data());
  } catch (const std::system_error& error) {  // printing, --no-exec, the current directory
    if (std::ferror(stdout) == 0) print_error(settings, error.what());
  } catch (const std::bad_alloc&) {
    print_error(settings, "there is not enough memory for this");
  }
  if (!output_written(settings)) code = std::max(code, kFailed);
  finish_standard_streams();
  return code;
}

}  // namespace tally
