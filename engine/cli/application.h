// Declarations that app.cc and app_commands.cc share: all commands, their options and the variables
// of these options.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>
#include <string>
#include <vector>

#include "engine/base/command_spec.h"
#include "engine/cli/commands.h"
#include "engine/cli/option_parsing.h"
#include "engine/workflow/step_kinds.h"

namespace tally {

class Application {
 public:
  // `word`: the first of the command line. Where it is a command's name, the other commands may
  // be left out.
  Application(Settings settings, const std::string& name, const std::string& word);
  Application(const Application&) = delete;
  Application& operator=(const Application&) = delete;

  // Parses the arguments, runs the command and returns the exit code.
  int run(int argc, char** argv);
  Words command_names() const;

 private:
  void add_commands(const std::string& word);
  const CLI::App* chosen() const;
  // Whether the chosen command can run without changing anything. Prints an error if it cannot.
  bool debug_allowed();
  CLI::App* command(const std::string& name, const std::string& what, std::function<int()> action);
  static void list(CLI::App* sub, const std::string& names, Words& into, const std::string& what,
                   const std::string& word);
  static void input_options(CLI::App* sub, InputArgs& input);
  // The input_options() with those of commands that make a plan.
  void planned_options(CLI::App* sub, InputArgs& input);
  void runs_options(CLI::App* sub);
  // Resolves the words of runs_options() and the input files. Returns false after an error.
  bool resolve_runs(const std::vector<Words*>& lists);
  // False, after an error, if the command executes what workflows name and --no-exec is given.
  bool may_execute(const char* command) const;
  bool resolve_files(const std::string& name, Words& files, InputArgs& input,
                     std::vector<Words*> lists);

  // The functions below are in app_commands.cc, or in X_command.cc of their command.
  void add_run();
  void add_fleet();
  void add_continue();
  void add_watch();
  void add_results();
  void add_plot();
  void add_report();
  void add_compare();
  void add_archive();
  void add_reference();
  void add_history();
  void add_meter();
  void add_doctor();
  void add_platform();
  void add_new();
  void add_info();
  void add_manage();
  void add_files();
  void add_help();
  int help_on(const std::string& topic) const;
  // All commands with their options, as data, for a program of that name.
  ProgramSpec program_spec(const std::string& name) const;
  // The completion script for shell_.
  std::string completion(const std::string& name) const;
  // Divides the words of `new` into the name and the command. Prints an error if it cannot.
  bool divide_words_of_new();
  // tally result FILE --logs PATH...
  int result_of_logs();

  Settings settings_;
  CLI::App app_;
  std::function<int()> action_;
  bool version_ = false;
  std::string color_ = "auto";
  int verbose_ = 0;
  bool ignored_ = false;
  bool debug_ = false;
  bool failed_again_ = false;
  bool usage_error_ = false;  // the command line cannot be parsed
  Words directories_;
  RunsArgs runs_;
  RunArgs run_;
  FleetArgs fleet_;
  ResultArgs result_;
  PlotArgs plot_;
  ReportArgs report_;
  CompareArgs compare_;
  ReferenceArgs reference_;
  HistoryArgs history_;
  MeterArgs meter_;
  NewArgs new_;
  PlatformArgs platform_;
  size_t behind_ = 0;  // how many words stand behind "--"
  InfoArgs info_;
  LogArgs log_;
  OutputArgs output_;
  CommentArgs comment_;
  RemoveArgs remove_;
  ValidateArgs files_;
  ScriptArgs script_;
  CLI::Option* steps_given_ = nullptr;
  CLI::Option* separator_ = nullptr;
  std::string topic_, completed_, shell_;
  ArchiveArgs archive_;
  VerifyArgs verify_;
};

}  // namespace tally
