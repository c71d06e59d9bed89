#include "engine/cli/app.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "engine/base/text.h"
#include "engine/check/reference.h"
#include "engine/cli/command_line.h"
#include "engine/cli/commands.h"
#include "engine/cli/input.h"
#include "engine/cli/runs.h"
#include "engine/cli/version.h"

namespace tally {
namespace {

// Scripts that ask for JUBE's version get the one whose language is read.
void print_version(const Invocation& invocation) {
  if (invocation.as_jube) {
    fmt::print("JUBE, version 2.7.1 (tally {})\n", kVersion);
  } else {
    fmt::print("tally {}\n", kVersion);
  }
}

// All commands, their options and the variables these fill.
class Application {
 public:
  Application(Invocation invocation, const std::string& name)
      : invocation_(std::move(invocation)),
        app_(
            "Runs benchmark workflows: reads a declarative file, expands its parameter space, runs "
            "or "
            "submits every point, reads the output and prints the tables.",
            name) {
    app_.set_help_flag("-h,--help", "show this help and exit");
    app_.add_flag("-V,--version", version_, "show the version and exit");
    app_.add_flag("-v,--verbose", invocation_.verbose, "say more; repeat for more still");
    app_.add_flag("--strict", invocation_.strict, "unknown keys and other warnings are errors");
    for (const char* ignored : {"--debug", "--force", "--devel"}) {
      app_.add_flag(ignored, ignored_, "accepted for JUBE's command lines")->group("");
    }
    app_.require_subcommand(0, 1);
    app_.fallthrough();
    add_run();
    add_continue();
    add_watch();
    add_results();
    add_info();
    add_manage();
    add_files();
    add_help();
  }

  int run(int argc, char** argv) {
    try {
      Words words;  // CLI11 takes them from the end
      for (int i = argc - 1; i > 0; --i) words.push_back(unabbreviated(app_, argc, argv, argv[i]));
      app_.parse(words);
    } catch (const CLI::CallForHelp&) {
      const CLI::App* shown = chosen();
      fmt::print("{}", shown != nullptr ? shown->help(invocation_.program) : app_.help());
      return kFine;
    } catch (const CLI::ParseError& error) {
      complain(invocation_, app_, argc, argv, error);
      return kBadInput;
    }
    if (version_) {
      print_version(invocation_);
      return kFine;
    }
    if (!action_) {
      fmt::print("{}", app_.help());
      return kFine;
    }
    const int code = action_();
    // JUBE's 2 is argparse's: what is wrong with the command line itself.
    return invocation_.as_jube && code == kBadInput && !usage_error_ ? kFailed : code;
  }

  Words command_names() const {
    Words names;
    for (const CLI::App* command : app_.get_subcommands(nullptr))
      names.push_back(command->get_name());
    return names;
  }

 private:
  const CLI::App* chosen() const {
    std::vector<CLI::App*> commands = app_.get_subcommands();
    return commands.empty() ? nullptr : commands.front();
  }

  CLI::App* command(const std::string& name, const std::string& what, std::function<int()> action) {
    CLI::App* sub = app_.add_subcommand(name, what);
    sub->fallthrough();
    sub->set_help_flag("-h,--help", "show this help and exit");
    sub->callback([this, action = std::move(action)] { action_ = action; });
    return sub;
  }

  static void list(CLI::App* sub, const std::string& names, Words& into, const std::string& what,
                   const std::string& word) {
    sub->add_option(names, into, what)->option_text(word + " ...");
  }

  void input_options(CLI::App* sub, InputArgs& input) {
    list(sub, "-t,--tag", input.tags, "tags to set", "TAG");
    list(sub, "--include-path", input.include_path,
         "folders in which included files are looked for", "DIR");
    sub->add_option("--set", input.set, "gives a parameter another value; may be repeated")
        ->allow_extra_args(false)
        ->option_text("NAME=VALUE");
  }

  void runs_options(CLI::App* sub) {
    sub->add_option("directory", directories_,
                    "folder of the runs, one run's folder, or the input file; default: here")
        ->option_text("DIR");
    list(sub, "-i,--id", runs_.ids,
         "runs: numbers, -1 for the last one, last, all; default: the newest", "ID");
  }

  // What runs_options() and input files came to; false when something is in the way.
  bool settle_runs(const std::vector<Words*>& lists) {
    if (directories_.empty()) {
      give_back(
          {&runs_.ids}, [](const std::string& word) { return !is_id(word); }, &directories_);
      give_back(
          lists, [](const std::string& word) { return exists(word) && !is_id(word); },
          &directories_);
    }
    if (directories_.size() > 1) {
      usage_error_ = true;
      print_error(invocation_, "one directory is expected, not " + join(directories_, " "));
      return false;
    }
    if (!directories_.empty()) runs_.directory = directories_.front();
    return true;
  }
  bool settle_files(const std::string& name, Words& files, InputArgs& input,
                    std::vector<Words*> lists) {
    lists.push_back(&input.tags);
    lists.push_back(&input.include_path);
    auto takes = [](const std::string& word) { return is_file(word); };
    if (files.empty()) give_back(lists, takes, &files);
    if (!files.empty()) return true;
    usage_error_ = true;
    print_error(invocation_, fmt::format("{} needs an input file", name),
                fmt::format("{} {} bench.yaml", invocation_.program, name));
    return false;
  }

  void add_run() {
    CLI::App* sub = command("run", "run the benchmarks of input files", [this] {
      RunArgs& a = run_;
      if (!settle_files("run", a.files, a.input, {&a.input.only, &a.input.exclude, &a.ids})) {
        return kBadInput;
      }
      if (a.script >= 0 && !a.dry_run) {
        print_error(invocation_, "--script shows what a dry run makes: add -n",
                    fmt::format("'{} script' writes all of them", invocation_.program));
        return kBadInput;
      }
      return run_command(invocation_, a);
    });
    sub->add_option("files", run_.files, "input files, YAML or XML")->option_text("FILE ...");
    input_options(sub, run_.input);
    list(sub, "--only-bench", run_.input.only, "only these benchmarks", "NAME");
    list(sub, "--not-bench", run_.input.exclude, "all but these benchmarks", "NAME");
    list(sub, "-i,--id", run_.ids, "use these ids for the runs", "ID");
    sub->add_option("-o,--outpath", run_.outpath, "folder of the runs, in place of the file's");
    sub->add_option("-j,--jobs", run_.jobs, "workpackages at once")->check(at_least(1));
    sub->add_option("-m,--comment", run_.comment, "comment kept with the run");
    sub->add_flag("-n,--dry-run", run_.dry_run, "print what would run; write nothing");
    sub->add_option("--script", run_.script,
                    "with -n: print the files made for this workpackage, byte for byte")
        ->check(at_least(0))
        ->option_text("WP");
    sub->add_option("--max-node-hours", run_.max_node_hours,
                    "refuse a run whose jobs may take more, before the first is submitted")
        ->check(CLI::NonNegativeNumber)
        ->option_text("N");
    sub->add_flag("--all,--list-all", run_.all, "with -n: list every workpackage");
    sub->add_flag("-e,--error", run_.exit_on_error, "stop at the first error");
    sub->add_flag("-a,--analyse", run_.analyse, "analyse after the run");
    sub->add_flag("-r,--result", run_.result, "show the results after the run");
    sub->add_flag("--wait,!--no-wait", waits_, "stay until submitted jobs have ended (default)");
    sub->add_flag("--hide-animation", run_.hide_animation, "no status line");
    sub->parse_complete_callback([this] { run_.no_wait = !waits_; });
  }

  void add_continue() {
    CLI::App* sub = command("continue", "go on with a run that is not finished", [this] {
      if (!settle_runs({})) return kBadInput;
      continue_.runs = runs_;
      continue_.no_wait = !waits_;
      return continue_command(invocation_, continue_);
    });
    runs_options(sub);
    sub->add_option("-j,--jobs", continue_.jobs, "workpackages at once")->check(at_least(1));
    sub->add_flag("-e,--error", continue_.exit_on_error, "stop at the first error");
    sub->add_flag("-a,--analyse", continue_.analyse, "analyse after the run");
    sub->add_flag("-r,--result", continue_.result, "show the results after the run");
    sub->add_flag("--wait,!--no-wait", waits_, "stay until submitted jobs have ended (default)");
    sub->add_flag("--hide-animation", continue_.hide_animation, "no status line");
  }

  void add_watch() {
    CLI::App* sub =
        command("watch", "show the jobs of a run until they have ended, then its tables", [this] {
          if (!settle_runs({})) return kBadInput;
          continue_.runs = runs_;
          return watch_command(invocation_, continue_);
        });
    runs_options(sub);
    sub->add_option("-j,--jobs", continue_.jobs, "workpackages at once")->check(at_least(1));
    sub->add_flag("-r,--result", continue_.result, "show the results at the end");
  }

  // tally result FILE --logs PATH...
  int result_of_logs() {
    Words files = directories_;
    if (files.empty()) {
      auto input = [](const std::string& word) {
        const std::string ending = to_lower(word.substr(std::min(word.rfind('.'), word.size())));
        return is_file(word) && (ending == ".yaml" || ending == ".yml" || ending == ".xml");
      };
      give_back({&result_.logs, &result_.input.tags, &result_.only, &result_.select,
                 &result_.exclude, &result_.input.include_path},
                input, &files);
    }
    if (files.size() != 1 || !is_file(files.front())) {
      print_error(
          invocation_,
          files.size() == 1
              ? fmt::format("--logs belong to an input file, and '{}' is none", files.front())
              : fmt::format("--logs belong to one input file, not to {}", files.size()),
          fmt::format("{} result bench.yaml --logs job.out", invocation_.program));
      return kBadInput;
    }
    result_.runs.directory = files.front();
    return result_command(invocation_, result_);
  }

  void add_results() {
    CLI::App* analyse = command("analyse", "read the output of a run again", [this] {
      if (!settle_runs({&result_.input.tags, &result_.input.include_path})) return kBadInput;
      result_.runs = runs_;
      return analyse_command(invocation_, result_);
    });
    CLI::App* result = command("result", "show the tables of runs", [this] {
      if (!result_.logs.empty()) return result_of_logs();
      if (!settle_runs({&result_.input.tags, &result_.input.include_path, &result_.only,
                        &result_.select, &result_.exclude})) {
        return kBadInput;
      }
      result_.runs = runs_;
      return result_command(invocation_, result_);
    });
    for (CLI::App* sub : {analyse, result}) {
      runs_options(sub);
      input_options(sub, result_.input);
      sub->add_option("-u,--update", result_.update,
                      "take patterns, analysers and results from this file")
          ->option_text("FILE");
    }
    result->add_flag("-a,--analyse", result_.analyse, "accepted: output is always analysed anew");
    list(result, "--logs", result_.logs,
         "the tables of an input file from these logs of jobs submitted by hand, one a workpackage",
         "PATH");
    list(result, "-o,--only", result_.only, "only these results", "NAME");
    list(result, "--select", result_.select, "only these columns", "COLUMN");
    list(result, "--exclude", result_.exclude, "all but these columns", "COLUMN");
    result
        ->add_option("-s,--style", result_.style, "pretty, csv or aligned, in place of the file's")
        ->check(CLI::IsMember({"pretty", "csv", "aligned"}));
    result->add_flag("-r,--reverse", result_.reverse, "newest run first");
    result->add_option("-n,--num", result_.last, "only the last N runs")->check(at_least(1));
  }

  void add_info() {
    CLI::App* info = command("info", "runs in a folder, or one run or step in detail", [this] {
      if (exists(info_.separator) && directories_.empty()) {
        directories_.push_back(info_.separator);
        info_.separator = ",";
      }
      if (!settle_runs({&info_.steps, &info_.workpackages})) return kBadInput;
      info_.runs = runs_;
      info_.with_steps = steps_given_->count() > 0;
      info_.csv = separator_->count() > 0;
      if (info_.separator.empty()) info_.separator = ",";
      return info_command(invocation_, info_);
    });
    runs_options(info);
    steps_given_ = info->add_option("-s,--step", info_.steps, "details of these steps, or of all")
                       ->expected(0, -1)
                       ->option_text("STEP ...");
    info->add_flag("-p,--parametrization", info_.parametrization,
                   "only the parameters, as a table");
    separator_ = info->add_option("-c,--csv-parametrization", info_.separator,
                                  "only the parameters, as csv with this separator")
                     ->expected(0, 1);
    list(info, "-w,--workpackage", info_.workpackages, "only these workpackages", "ID");

    runs_options(command("status", "RUNNING, ERROR or FINISHED, and how the jobs are", [this] {
      return settle_runs({}) ? status_command(invocation_, runs_) : kBadInput;
    }));

    CLI::App* log = command("log", "show a run's logs", [this] {
      if (!settle_runs({&log_.commands})) return kBadInput;
      log_.runs = runs_;
      return log_command(invocation_, log_);
    });
    runs_options(log);
    list(log, "-c,--command", log_.commands, "only the log of this command", "COMMAND");

    CLI::App* output = command("output", "show where workpackages wrote, and what", [this] {
      if (!settle_runs({&output_.steps, &output_.workpackages})) return kBadInput;
      output_.runs = runs_;
      return output_command(invocation_, output_);
    });
    runs_options(output);
    list(output, "-s,--step", output_.steps, "only these steps", "STEP");
    list(output, "-w,--workpackage", output_.workpackages, "only these workpackages", "ID");
    output->add_flag("-d,--display", output_.display, "show the content, too");
    output->add_option("-o,--only", output_.only, "stdout or stderr")
        ->check(CLI::IsMember({"stdout", "stderr"}));
  }

  void add_manage() {
    CLI::App* comment = command("comment", "give a run a comment", [this] {
      if (!settle_runs({})) return kBadInput;
      comment_.runs = runs_;
      return comment_command(invocation_, comment_);
    });
    comment->add_option("comment", comment_.comment, "the text")->required();
    runs_options(comment);
    comment->add_flag("-a,--append", comment_.append, "add it to the comment that is there");

    CLI::App* remove = command("remove", "remove runs, or workpackages to be run again", [this] {
      if (!settle_runs({&remove_.workpackages})) return kBadInput;
      remove_.runs = runs_;
      return remove_command(invocation_, remove_);
    });
    runs_options(remove);
    list(remove, "-w,--workpackage", remove_.workpackages,
         "these workpackages and those made from them; `continue` runs them again", "ID");
    remove->add_flag("-f,--force", remove_.force, "do not ask");
  }

  void add_files() {
    CLI::App* validate = command("validate", "check input files; unknown keys are errors", [this] {
      if (!settle_files("validate", files_.files, files_.input, {})) return kBadInput;
      return validate_command(invocation_, files_);
    });
    CLI::App* tag = command("tag", "list the tags an input file knows", [this] {
      if (!settle_files("tag", files_.files, files_.input, {})) return kBadInput;
      return tag_command(invocation_, files_);
    });
    for (CLI::App* sub : {validate, tag}) {
      sub->add_option("files", files_.files, "input files")->option_text("FILE ...");
      input_options(sub, files_.input);
    }
    CLI::App* script =
        command("script", "write the job scripts of a benchmark; submit nothing", [this] {
          if (!settle_files("script", script_.files, script_.input, {})) return kBadInput;
          return script_command(invocation_, script_);
        });
    script->add_option("files", script_.files, "input files")->option_text("FILE ...");
    input_options(script, script_.input);
    script->add_option("--out", script_.out, "folder to write to")->required()->option_text("DIR");
  }

  void add_help() {
    CLI::App* help = command("help", "help on a command", [this] {
      if (topic_.empty()) {  // app_.help() would be the help of `help`
        fmt::print("{}", app_.get_formatter()->make_help(&app_, invocation_.program,
                                                         CLI::AppFormatMode::Normal));
        return kFine;
      }
      const CLI::App* sub = find_command(app_, topic_);
      if (sub == nullptr) {
        print_error(invocation_, fmt::format("there is no command '{}'", topic_),
                    did_you_mean(topic_, command_names()));
        return kBadInput;
      }
      fmt::print("{}", sub->help(invocation_.program));
      return kFine;
    });
    help->add_option("command", topic_, "the command");
    command("reference", "every key of the input language", [] {
      fmt::print("{}", reference_markdown());
      return kFine;
    });
    CLI::App* complete =
        command("complete", "completion for bash: eval \"$(tally complete)\"", [this] {
          print_completion(app_, completed_.empty() ? invocation_.program : completed_);
          return kFine;
        });
    complete->add_option("-c,--command-name", completed_, "the program's name");
    command("update", "say where newer versions are", [] {
      fmt::print("This is tally {}. It looks for nothing on the network; pull and build again.\n",
                 kVersion);
      return kFine;
    })->group("");
  }

  Invocation invocation_;
  CLI::App app_;
  std::function<int()> action_;
  bool version_ = false;
  bool ignored_ = false;
  bool usage_error_ = false;  // the command line cannot be understood
  bool waits_ = true;
  Words directories_;
  RunsArgs runs_;
  RunArgs run_;
  ContinueArgs continue_;
  ResultArgs result_;
  InfoArgs info_;
  LogArgs log_;
  OutputArgs output_;
  CommentArgs comment_;
  RemoveArgs remove_;
  ValidateArgs files_;
  ScriptArgs script_;
  CLI::Option* steps_given_ = nullptr;
  CLI::Option* separator_ = nullptr;
  std::string topic_, completed_;
};

}  // namespace

int run_application(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  Invocation invocation;
  std::string path = argc > 0 ? argv[0] : "tally";
  invocation.program = path.substr(path.rfind('/') + 1);
  invocation.as_jube = invocation.program == "jube";
  if (const char* verbose = std::getenv("JUBE_VERBOSE")) invocation.verbose = std::atoi(verbose);
  if (argc == 2 && (std::strcmp(argv[1], "--version") == 0 || std::strcmp(argv[1], "-V") == 0)) {
    print_version(invocation);
    return kFine;
  }
  Application application(invocation, invocation.program);
  Words names = application.command_names();
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (!word.empty() && word[0] == '-') continue;
    if (std::find(names.begin(), names.end(), word) == names.end()) {
      std::string hint = did_you_mean(word, names);
      if (hint.empty() && is_file(word)) {
        hint = fmt::format("did you mean '{} run {}'?", invocation.program, word);
      }
      print_error(invocation, fmt::format("there is no command '{}'", word),
                  hint.empty() ? "the commands are " + join(names, ", ") : hint);
      return kBadInput;
    }
    break;
  }
  return application.run(argc, argv);
}

}  // namespace tally
