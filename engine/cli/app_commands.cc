// The commands with their options, and the interpretation of their arguments.
#include <fmt/format.h>

#include <algorithm>

#include "engine/base/text.h"
#include "engine/cli/application.h"
#include "engine/cli/prepare.h"

namespace tally {

bool Application::may_execute(const char* command) const {
  if (!settings_.no_exec) return true;
  print_error(settings_,
              fmt::format("`{}` executes commands, which --no-exec does not allow", command),
              "run -n, script, validate and result work with it");
  return false;
}

void Application::add_run() {
  CLI::App* sub = command("run", "run the benchmarks of input files", [this] {
    RunArgs& a = run_;
    if (!resolve_files("run", a.files, a.input, {&a.input.only, &a.input.exclude, &a.ids})) {
      return kBadInput;
    }
    if (a.script >= 0 && !a.dry_run) {
      print_error(settings_, "--script shows what a dry run makes: add -n",
                  fmt::format("'{} script' writes all of them", settings_.command));
      return kBadInput;
    }
    if (!a.dry_run && !may_execute("run")) return kBadInput;
    return run_command(settings_, a);
  });
  sub->add_option("files", run_.files, "input files, YAML or XML")->option_text("FILE ...");
  planned_options(sub, run_.input);
  list(sub, "--only-bench", run_.input.only, "only these benchmarks", "NAME");
  list(sub, "--not-bench", run_.input.exclude, "all but these benchmarks", "NAME");
  list(sub, "-i,--id", run_.ids, "use these ids for the runs", "ID");
  sub->add_option("-o,--outpath", run_.outpath, "folder of the runs, in place of the file's")
      ->option_text("DIR");
  sub->add_option("-j,--jobs", settings_.jobs, "workpackages at once")->check(at_least(1));
  const CLI::Option* comment =
      sub->add_option("-m,--comment", run_.comment, "comment kept with the run");
  sub->add_flag("-n,--dry-run", run_.dry_run, "print what would run; write nothing");
  sub->add_option("--script", run_.script,
                  "with -n: print the files made for this workpackage, byte for byte")
      ->check(at_least(0))
      ->option_text("WP");
  sub->add_option("--max-node-hours", run_.max_node_hours,
                  "refuse a run whose jobs may take more, before the first is submitted")
      ->check(amount())
      ->option_text("N");
  sub->add_flag("--all,--list-all", run_.all, "with -n: list every workpackage");
  sub->add_flag("--fresh", settings_.fresh,
                "setup and build steps take nothing over from earlier runs");
  sub->add_flag("-e,--error", settings_.exit_on_error, "stop at the first error");
  sub->add_flag("-a,--analyse", settings_.analyse, "analyse after the run");
  sub->add_flag("-r,--result", settings_.result, "show the results after the run");
  sub->add_option("--junit", run_.junit,
                  "write a report in JUnit's XML: a test for each workpackage and each reference; "
                  "-: to standard output, and all else to standard error")
      ->option_text("FILE");
  sub->add_flag("--wait,!--no-wait", settings_.wait_for_jobs,
                "stay until submitted jobs have ended (default)");
  sub->add_flag("--hide-animation", settings_.hide_animation, "no status line");
  sub->parse_complete_callback([this, comment] { run_.with_comment = comment->count() > 0; });
}

void Application::add_continue() {
  CLI::App* sub = command("continue", "go on with a run that is not finished", [this] {
    if (!resolve_runs({}) || !may_execute("continue")) return kBadInput;
    return continue_command(settings_, {runs_, failed_again_, fleet_.budget});
  });
  runs_options(sub);
  if (!settings_.called_as_jube) {
    sub->add_flag("--failed", failed_again_, "do the workpackages that failed again, too");
    sub->add_option("--budget", fleet_.budget,
                    "of a fleet: begin nothing more once so many node-hours are spent in all")
        ->check(amount())
        ->option_text("NODE-HOURS");
  }
  sub->add_option("-j,--jobs", settings_.jobs, "workpackages at once")->check(at_least(1));
  sub->add_flag("-e,--error", settings_.exit_on_error, "stop at the first error");
  sub->add_flag("-a,--analyse", settings_.analyse, "analyse after the run");
  sub->add_flag("-r,--result", settings_.result, "show the results after the run");
  sub->add_flag("--wait,!--no-wait", settings_.wait_for_jobs,
                "stay until submitted jobs have ended (default)");
  sub->add_flag("--hide-animation", settings_.hide_animation, "no status line");
}

void Application::add_watch() {
  CLI::App* sub =
      command("watch", "show the jobs of a run until they have ended, then its tables", [this] {
        if (!resolve_runs({}) || !may_execute("watch")) return kBadInput;
        return watch_command(settings_, runs_);
      });
  runs_options(sub);
  sub->add_option("-j,--jobs", settings_.jobs, "workpackages at once")->check(at_least(1));
  sub->add_flag("-r,--result", settings_.result, "show the results at the end");
}

int Application::result_of_logs() {
  Words files = directories_;
  if (files.empty()) {
    auto input = [](const std::string& word) {
      const std::string ending = to_lower(word.substr(std::min(word.rfind('.'), word.size())));
      return is_file(word) && (ending == ".yaml" || ending == ".yml" || ending == ".xml");
    };
    give_back({&result_.logs, &result_.input.tags, &result_.only, &result_.select, &result_.exclude,
               &result_.input.include_path},
              input, &files);
  }
  if (files.size() != 1 || !is_file(files.front())) {
    print_error(settings_,
                files.size() == 1
                    ? fmt::format("--logs belong to an input file, and '{}' is none", files.front())
                    : fmt::format("--logs belong to one input file, not to {}", files.size()),
                fmt::format("{} result bench.yaml --logs job.out", settings_.command));
    return kBadInput;
  }
  result_.runs.directory = files.front();
  return result_command(settings_, result_);
}

void Application::add_results() {
  CLI::App* analyse = command("analyse", "read the output of a run again", [this] {
    if (!resolve_runs({&result_.input.tags, &result_.input.include_path})) return kBadInput;
    result_.runs = runs_;
    return analyse_command(settings_, result_);
  });
  CLI::App* result = command("result", "show the tables of runs", [this] {
    if (!result_.logs.empty()) return result_of_logs();
    if (!resolve_runs({&result_.input.tags, &result_.input.include_path, &result_.only,
                       &result_.select, &result_.exclude})) {
      return kBadInput;
    }
    result_.runs = runs_;
    return result_command(settings_, result_);
  });
  for (CLI::App* sub : {analyse, result}) {
    runs_options(sub);
    input_options(sub, result_.input);
    sub->add_option("-u,--update", result_.update,
                    "take patterns, analysers and results from this file")
        ->option_text("FILE");
  }
  result->add_flag("-a,--analyse", ignored_, "accepted: output is always analysed again");
  list(result, "--logs", result_.logs,
       "the tables of an input file from these logs of jobs submitted by hand, one a workpackage",
       "PATH");
  list(result, "-o,--only", result_.only, "only these results", "NAME");
  list(result, "--select", result_.select, "only these columns", "COLUMN");
  list(result, "--exclude", result_.exclude, "all but these columns", "COLUMN");
  std::vector<std::string> styles = {"pretty", "csv", "aligned"};
  if (!settings_.called_as_jube) styles.insert(styles.end(), {"markdown", "json", "jsonl"});
  result
      ->add_option("-s,--style", result_.style,
                   join(styles, ", ") + ", in place of the file's style")
      ->check(CLI::IsMember(styles))
      ->option_text("STYLE");
  result->add_flag("-r,--reverse", result_.reverse, "newest run first");
  result->add_option("-n,--num", result_.last, "only the last N runs")->check(at_least(1));
}

void Application::add_compare() {
  CLI::App* sub = command("compare", "say whether a run is better or worse than another", [this] {
    return compare_.why ? compare_why_command(settings_, compare_)
                        : compare_command(settings_, compare_);
  });
  sub->add_option("runs", compare_.runs,
                  "the first run and the second: a run's folder, or the folder of runs or input "
                  "file, for its newest run; for the first also a file of `result -s json`")
      ->option_text("RUN RUN");
  list(sub, "-i,--id", compare_.ids,
       "runs of one folder: numbers, -1 for the last one, last; the first one is the base", "ID");
  sub->add_option("--by", compare_.by,
                  "compared rows may differ in this parameter; of one run: compare its values with "
                  "the first one")
      ->option_text("PARAMETER");
  sub->add_option("--threshold", compare_.threshold, "a smaller change does not matter (2%)")
      ->option_text("PERCENT");
  sub->add_option("--metric", compare_.metric, "only this column")->option_text("COLUMN");
  sub->add_option(
         "--better", compare_.better,
         "which direction of --metric is better, if the column does not say: higher, lower")
      ->check(CLI::IsMember({"higher", "lower"}))
      ->option_text("WHICH");
  sub->add_flag("--why", compare_.why,
                "divide the difference of two steps over what they spent their time on: of two "
                "runs, records of tally-train --explain, or workpackages' folders");
  sub->add_flag("--null", compare_.null_comparison,
                "compare the odd repeats of each row with its even ones: nothing should be found");
  sub->add_option("-s,--style", compare_.style, "pretty, csv, markdown or json")
      ->check(CLI::IsMember({"pretty", "csv", "markdown", "json"}))
      ->option_text("STYLE");
}

void Application::add_reference() {
  CLI::App* sub = command("reference", "every key of the input language", [this] {
    if (reference_.update && !resolve_runs({})) return kBadInput;
    reference_.runs = runs_;
    return reference_command(settings_, reference_);
  });
  sub->add_flag("--json-schema", reference_.json_schema, "as the JSON schema of workflows in YAML");
  sub->add_flag("--update", reference_.update,
                "write the values that a run measured into the references of its input file");
  runs_options(sub);
  sub->add_option("--file", reference_.file, "with --update: this file, in place of the run's")
      ->option_text("FILE");
  sub->add_option("--tolerance", reference_.tolerance,
                  "with --update: margin of bounds and ranges (5%)")
      ->option_text("PERCENT");
}

void Application::add_info() {
  CLI::App* info = command("info", "runs in a folder, or one run or step in detail", [this] {
    if (exists(info_.separator) && directories_.empty()) {
      directories_.push_back(info_.separator);
      info_.separator = ",";
    }
    if (!resolve_runs({&info_.steps, &info_.workpackages})) return kBadInput;
    info_.runs = runs_;
    info_.with_steps = steps_given_->count() > 0;
    info_.csv = separator_->count() > 0;
    if (info_.separator.empty()) info_.separator = ",";
    return info_command(settings_, info_);
  });
  runs_options(info);
  steps_given_ = info->add_option("-s,--step", info_.steps, "details of these steps, or of all")
                     ->expected(0, -1)
                     ->option_text("STEP ...");
  info->add_flag("-p,--parametrization", info_.parametrization, "only the parameters, as a table");
  separator_ = info->add_option("-c,--csv-parametrization", info_.separator,
                                "only the parameters, as csv with this separator")
                   ->expected(0, 1);
  list(info, "-w,--workpackage", info_.workpackages, "only these workpackages", "ID");

  runs_options(command("status", "RUNNING, ERROR or FINISHED, and how the jobs are", [this] {
    return resolve_runs({}) ? status_command(settings_, runs_) : kBadInput;
  }));

  CLI::App* log = command("log", "show a run's logs", [this] {
    if (!resolve_runs({&log_.commands})) return kBadInput;
    log_.runs = runs_;
    return log_command(settings_, log_);
  });
  runs_options(log);
  list(log, "-c,--command", log_.commands, "only the log of this command", "COMMAND");

  CLI::App* output = command("output", "show where workpackages wrote, and what", [this] {
    if (!resolve_runs({&output_.steps, &output_.workpackages})) return kBadInput;
    output_.runs = runs_;
    return output_command(settings_, output_);
  });
  runs_options(output);
  list(output, "-s,--step", output_.steps, "only these steps", "STEP");
  list(output, "-w,--workpackage", output_.workpackages, "only these workpackages", "ID");
  output->add_flag("-d,--display", output_.display, "show the content, too");
  output->add_option("-o,--only", output_.only, "stdout or stderr")
      ->check(CLI::IsMember({"stdout", "stderr"}));
}

void Application::add_manage() {
  CLI::App* comment = command("comment", "give a run a comment", [this] {
    if (!resolve_runs({})) return kBadInput;
    comment_.runs = runs_;
    return comment_command(settings_, comment_);
  });
  comment->add_option("comment", comment_.comment, "the text")->required();
  runs_options(comment);
  comment->add_flag("-a,--append", comment_.append, "add it to the comment that is there");

  CLI::App* remove = command("remove", "remove runs, or workpackages to be run again", [this] {
    if (!resolve_runs({&remove_.workpackages})) return kBadInput;
    remove_.runs = runs_;
    return remove_command(settings_, remove_);
  });
  runs_options(remove);
  list(remove, "-w,--workpackage", remove_.workpackages,
       "these workpackages and those made from them; `continue` runs them again", "ID");
  remove->add_flag("-f,--force", remove_.force, "do not ask");
}

void Application::add_files() {
  CLI::App* validate = command("validate", "check input files; unknown keys are errors", [this] {
    if (!resolve_files("validate", files_.files, files_.input, {})) return kBadInput;
    return validate_command(settings_, files_);
  });
  CLI::App* tag = command("tag", "list the tags that an input file, or a run's, knows", [this] {
    const auto takes = [](const std::string& word) { return exists(word) && !is_id(word); };
    if (files_.files.empty()) give_back({&files_.ids}, takes, &files_.files);
    if (!resolve_files("tag", files_.files, files_.input, {})) return kBadInput;
    return tag_command(settings_, files_);
  });
  CLI::App* show =
      command("show", "print a workflow in its long form, with what it includes", [this] {
        if (!resolve_files("show", files_.files, files_.input, {})) return kBadInput;
        return show_command(settings_, files_);
      });
  validate
      ->add_option("--format", files_.format,
                   "problems for editors and CI systems, on standard output")
      ->check(CLI::IsMember({"text", "gcc", "github", "sarif", "json"}))
      ->option_text("text|gcc|github|sarif|json");
  for (CLI::App* sub : {validate, tag, show}) {
    sub->add_option("files", files_.files, "input files")->option_text("FILE ...");
    sub == validate ? planned_options(sub, files_.input) : input_options(sub, files_.input);
  }
  list(tag, "-i,--id", files_.ids, "runs of a folder: numbers, last, all", "ID");
  CLI::App* script =
      command("script", "write the job scripts of a benchmark; submit nothing", [this] {
        if (!resolve_files("script", script_.files, script_.input, {})) return kBadInput;
        return script_command(settings_, script_);
      });
  script->add_option("files", script_.files, "input files")->option_text("FILE ...");
  planned_options(script, script_.input);
  script->add_option("--out", script_.out, "folder to write to")->required()->option_text("DIR");
}

}  // namespace tally
