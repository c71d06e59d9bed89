#include "engine/plan/planned_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <variant>

#include "engine/base/duration.h"
#include "engine/base/shell_words.h"
#include "engine/base/text.h"
#include "engine/check/job_check.h"
#include "engine/workflow/builtin_names.h"
#include "engine/workpackage/values.h"
#include "engine/workspace/substitute_files.h"

namespace tally {
namespace {

class PlannedCheck {
 public:
  PlannedCheck(PlannedRun& planned, Diagnostics& diagnostics)
      : planned_(planned), benchmark_(planned.run.benchmark()), diagnostics_(diagnostics) {}

  void run() {
    check_values();
    if (benchmark_.rules.empty_run_is_error) check_excluded();
    if (diagnostics_.has_errors()) return;
    std::vector<bool> to_check;
    for (const Step& step : benchmark_.steps) to_check.push_back(has_something_to_check(step));
    for (const Workpackage& workpackage : planned_.plan.workpackages) {
      if (!to_check[static_cast<size_t>(workpackage.step)] ||
          workpackage.outcome.state == State::failed ||
          planned_.plan.in_doubt.count(workpackage.id) > 0) {
        continue;
      }
      const Step& step = step_of(workpackage);
      const WorkpackageValues values(benchmark_, planned_.run.expander(), workpackage);
      const bool final = planned_.run.expander().is_final(workpackage.point);
      const Lookup lookup = [&](std::string_view name) -> const std::string* {
        if (differs_between_runs(name) || (!final && is_open(workpackage.point, name)))
          return nullptr;
        return values.find(name);
      };
      if (step.kind == StepKind::run) check_resources(step, lookup);
      for (const Step& component : step.components) {
        check_resources(component, lookup);
        check_starter(component, lookup);
      }
      check_job(step, lookup);
      check_modules(step, lookup);
      if (step.kind == StepKind::run) check_inherited_platform(step, lookup);
      if (step.kind == StepKind::run) check_starter(step, lookup);
      if (step.kind == StepKind::run && !lacks_launch(step, lookup)) check_local(step, lookup);
      check_operations(step, lookup);
      // Files that the first step copies must exist, because nothing runs before it. Any other step
      // may run after a step that creates its files.
      if (is_first(step)) check_sources(step, workpackage, lookup);
    }
    evaluate_operations();
    report_local();
  }

 private:
  using MarkKey = std::tuple<uint32_t, uint32_t, uint32_t>;
  static MarkKey key(const Mark& mark) { return {mark.file, mark.line, mark.column}; }

  const Step& step_of(const Workpackage& workpackage) const {
    return benchmark_.steps[static_cast<size_t>(workpackage.step)];
  }

  // Names whose values a plan does not know, because they differ between runs.
  static bool differs_between_runs(std::string_view name) {
    if (is_workpackage_name(name)) return true;
    const BuiltinName* builtin = find_builtin(name);
    return builtin != nullptr && builtin->phase == BuiltinPhase::run &&
           builtin->id != Builtin::benchmark_home && builtin->id != Builtin::benchmark_name;
  }

  // Whether the name is a parameter whose value is not known yet.
  bool is_open(const Point& point, std::string_view name) const {
    return std::ranges::any_of(point.bindings, [&](const Binding& binding) {
      return planned_.run.texts()[binding.name] == name &&
             !planned_.run.expander().is_final(binding);
    });
  }

  bool is_first(const Step& step) const {
    return &step == &benchmark_.steps.front() && step.active.value == "true";
  }

  // Whether the step may use a file set or a substitution set.
  bool may_copy(const Step& step) const {
    return std::ranges::any_of(step.use, [this](const Text& use) {
      if (has_dollar_name(use.value)) return true;
      for (const std::string& name : split_strip(use.value, ",")) {
        if (benchmark_.file_sets.count(name) + benchmark_.substitute_sets.count(name) != 0)
          return true;
      }
      return false;
    });
  }

  // Called once per step, because there may be a million workpackages.
  bool has_something_to_check(const Step& step) const {
    return step.kind != StepKind::plain || !step.modules.empty() ||
           (is_first(step) && may_copy(step)) ||
           std::ranges::any_of(step.operations, [](const Operation& operation) {
             return operation.active.value != "true";
           });
  }

  // A step of which nothing is left measures nothing.
  void check_excluded() {
    std::set<const Step*> left;
    for (const Workpackage& workpackage : planned_.plan.workpackages)
      left.insert(&step_of(workpackage));
    std::map<const Step*, std::pair<Text, size_t>> gone;
    for (const Excluded& excluded : planned_.plan.excluded) {
      if (left.count(excluded.step) != 0) continue;
      ++gone.try_emplace(excluded.step, excluded.rule, 0).first->second.second;
    }
    for (const auto& [step, why] : gone)
      report_no_point(*step, why.first, why.second, diagnostics_);
  }

  // Reports one message for each place in the file, no matter how many workpackages it affects.
  void check_values() {
    struct Mistake {
      const Workpackage* first;
      size_t count = 0;
    };
    std::map<std::pair<int, MarkKey>, Mistake> mistakes;
    std::vector<size_t> made(benchmark_.steps.size()), failed(benchmark_.steps.size());
    for (const Workpackage& workpackage : planned_.plan.workpackages) {
      const auto step = static_cast<size_t>(workpackage.step);
      ++made[step];
      if (workpackage.outcome.state != State::failed) continue;
      ++failed[step];
      Mistake& mistake = mistakes
                             .try_emplace({workpackage.step, key(workpackage.outcome.place)},
                                          Mistake{&workpackage})
                             .first->second;
      ++mistake.count;
    }
    for (const auto& [where, mistake] : mistakes) {
      const Step& step = step_of(*mistake.first);
      const auto number = static_cast<size_t>(where.first);
      const size_t all = made[number];
      const Outcome& outcome = mistake.first->outcome;
      const Mark mark = outcome.place.known() ? outcome.place : step.name.mark;
      const std::string of =
          all == 1 ? fmt::format("step '{}' cannot be made", step.name.value)
                   : fmt::format("{} of {} workpackages of step '{}' cannot be made",
                                 mistake.count == all ? "all" : std::to_string(mistake.count), all,
                                 step.name.value);
      if (failed[number] == all) {
        diagnostics_.error(mark, message(outcome), of);
      } else {
        diagnostics_.warning(mark, message(outcome), of + "; the others run");
      }
    }
  }

  struct Requirement {
    const char* words;
    bool (*fits)(const std::string& text);
  };

  // Reports a value of `text` that cannot be used, once. A value that is not known yet is skipped.
  void check_text(const Step& step, const char* what, const Text& text, const Lookup& lookup,
                  const Requirement& required) {
    if (text.value.empty()) return;
    const std::string value(strip(substitute(text.value, lookup)));
    if (has_dollar_name(value) || required.fits(value)) return;
    if (!told_.insert({key(text.mark), value}).second) return;
    diagnostics_.error(text.mark.known() ? text.mark : step.name.mark,
                       fmt::format("step '{}': {} \"{}\" is not {}", step.name.value, what, value,
                                   required.words));
  }

  static bool is_whole(const std::string& text, long least) {
    long number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size() && number >= least;
  }

  void check_resources(const Step& step, const Lookup& lookup) {
    const Resources& asked = step.resources;
    const auto above_zero = [](const std::string& text) {
      return parse_duration(text).value_or(0) > 0;
    };
    const Requirement count{"a whole number of at least 1",
                            [](const std::string& text) { return is_whole(text, 1); }};
    const Requirement whole{"a whole number",
                            [](const std::string& text) { return is_whole(text, 0); }};
    const Requirement time{"a time: seconds, 10m, 2h, HH:MM:SS or D-HH:MM:SS", above_zero};
    check_text(step, "nodes", asked.nodes, lookup, count);
    check_text(step, "tasks_per_node", asked.tasks_per_node, lookup, count);
    check_text(step, "cpus_per_task", asked.cpus_per_task, lookup, count);
    check_text(step, "gpus_per_node", asked.gpus_per_node, lookup, whole);
    check_text(step, "time", asked.time, lookup, time);
    check_text(step, "timeout", step.timeout, lookup, {"a time above 0", above_zero});
    check_text(step, "cycles", step.cycles, lookup, count);
    PackRule rule;
    const Status valid = step.kinds->pack_rule(step, lookup, &rule);
    if (!valid && told_.insert({key(step.name.mark), valid.message()}).second)
      diagnostics_.error(step.name.mark, valid.message());
  }

  // Options and other texts of the job script, now that their parameters have values.
  void check_job(const Step& step, const Lookup& lookup) {
    for (const JobFault& fault : step.kinds->job_faults(step, lookup)) {
      const Mark mark = place_of(benchmark_, step, fault);
      if (told_.insert({key(mark), fault.message}).second)
        diagnostics_.error(mark, fault.message, fault.hint);
    }
  }

  // Whether the step's commands name the number of tasks, or a parameter that gives it.
  static bool names_tasks(const Step& step) {
    std::vector<std::string> counts = {"tasks", "taskspernode"};
    for (const Text* text : {&step.resources.nodes, &step.resources.tasks_per_node}) {
      for (const std::string& name : dollar_names(text->value)) counts.push_back(name);
    }
    std::vector<std::string> named = dollar_names(step.launch.value);
    for (const Operation& operation : step.operations) {
      for (const std::string& name : dollar_names(operation.command.value)) named.push_back(name);
    }
    return std::ranges::any_of(named,
                               [&](const std::string& name) { return contains(counts, name); });
  }

  // Whether its commands submit the script themselves, as in files of JUBE's.
  static bool submits(const Step& step, const Lookup& lookup) {
    const std::string* script = job_value(lookup, "submit_script");
    if (script == nullptr || script->empty()) return false;
    return std::ranges::any_of(step.operations, [&](const Operation& operation) {
      const std::vector<std::string> names = dollar_names(operation.command.value);
      return std::ranges::any_of(names,
                                 [](const std::string& name) {
                                   return name == "submit" || name == "submit_script";
                                 }) ||
             substitute(operation.command.value, lookup).find(*script) != std::string::npos;
    });
  }

  // Whether its sets, a platform's among them, make a script that names the modules.
  bool has_script_with_modules(const Step& step, const Lookup& lookup) const {
    for (const SubstituteSet* set : substitute_sets(benchmark_, used_sets(step, lookup))) {
      for (const Substitution& each : set->substitutions) {
        const std::vector<std::string> names = dollar_names(each.dest.value);
        for (const std::string& name : {std::string("modules"), platform_name("modules")})
          if (contains(names, name)) return true;
      }
    }
    return false;
  }

  static bool has_text(const Text& text, const Lookup& lookup) {
    return !strip(substitute(text.value, lookup)).empty();
  }

  static std::string reason_without_modules(const Step& step, bool launches) {
    if (launches) return fmt::format("no job script of step '{}' names $modules", step.name.value);
    return step.launch.value.empty()
               ? fmt::format("step '{}' has no `launch`", step.name.value)
               : fmt::format("the `launch` of step '{}' is empty", step.name.value);
  }

  // Modules are loaded for the program that is launched, by scripts that name them, and by commands
  // that have their line.
  void check_modules(const Step& step, const Lookup& lookup) {
    const auto first = std::ranges::find_if(
        step.modules, [&](const Text& each) { return has_text(each, lookup); });
    if (first == step.modules.end()) return;
    const bool launches = has_text(step.launch, lookup);
    // Without a platform the engine loads them itself, in the command that launches.
    if (launches && !has_platform(step)) return;
    // A step without a platform may submit the script of its own sets in any way.
    if ((launches || step.platform.empty()) && has_script_with_modules(step, lookup)) return;
    if (!launches && submits(step, lookup)) return;
    const std::string* line = job_value(lookup, "modules");
    for (const Operation& operation : step.operations) {
      const std::string command = substitute(operation.command.value, lookup);
      if (line != nullptr && !line->empty() && command.find(*line) != std::string::npos) return;
    }
    const std::string text =
        fmt::format("{}: its modules would not be loaded", reason_without_modules(step, launches));
    if (told_.insert({key(first->mark), text}).second)
      diagnostics_.error(first->mark, text,
                         launches ? "substitute a line of the script by $modules, as the shipped "
                                    "platforms do, or load them in `launch`"
                                  : "load them in its commands: module load NAME && ...");
  }

  // Whether the step itself, and not a step before it, names a platform or its sets.
  bool has_platform(const Step& step) const {
    if (!step.platform.empty()) return true;
    for (const Text& names : step.use) {
      for (const std::string& name : split_strip(names.value, ",")) {
        const auto set = benchmark_.parameter_sets.find(name);
        if (set == benchmark_.parameter_sets.end()) continue;
        for (const Parameter& parameter : set->second.parameters)
          if (parameter.name.value == "scheduler") return true;
      }
    }
    return false;
  }

  // Whether one of its sets may put the file there.
  bool gets_file(const Step& step, const std::string& file, const Lookup& lookup) const {
    const std::vector<std::string> sets = used_sets(step, lookup);
    if (!substitute_sets(benchmark_, sets).empty()) return true;
    for (const std::string& name : sets) {
      const auto set = benchmark_.file_sets.find(name);
      if (set == benchmark_.file_sets.end()) continue;
      for (const auto& entry : set->second.entries) {
        const auto* copy = std::get_if<FileCopy>(&entry);
        if (copy == nullptr) return true;
        const Text& named = copy->target.value.empty() ? copy->source : copy->target;
        if (substitute(named.value, lookup).find(file) != std::string::npos) return true;
      }
    }
    return false;
  }

  // The parameters of a platform pass to later steps, its job script does not.
  void check_inherited_platform(const Step& step, const Lookup& lookup) {
    if (!has_text(step.launch, lookup) || has_platform(step)) return;
    const std::string* script = job_value(lookup, "submit_script");
    const std::string* scheduler = job_value(lookup, "scheduler");
    if (script == nullptr || scheduler == nullptr ||
        step.kinds->platform_of(step, lookup).local() || gets_file(step, *script, lookup))
      return;
    const std::string text = fmt::format(
        "step '{}' has no `platform`: its scheduler ({}) is that of a step before it, and it has "
        "no job script",
        step.name.value, *scheduler);
    if (told_.insert({key(step.name.mark), text}).second)
      diagnostics_.error(step.name.mark, text,
                         "give it `platform`; `platform: local` runs its program on this machine");
  }

  // A user who comes from job scripts writes `srun ./program`. The platform puts its own word
  // before that, and each task would start all tasks again.
  void check_starter(const Step& step, const Lookup& lookup) {
    const std::string* starter = job_value(lookup, "starter");
    if (starter == nullptr || strip(*starter).empty()) return;
    const auto word_of = [](const std::string& line) {
      const std::vector<ShellWord> words = shell_words(line);
      const std::string word = words.empty() ? "" : words.front().text;
      return word.substr(word.rfind('/') + 1);
    };
    static const std::set<std::string> starters = {"aprun", "jsrun",   "mpiexec", "mpirun",
                                                   "prun",  "orterun", "srun"};
    const std::string first = word_of(substitute(step.launch.value, lookup));
    const std::string own = word_of(*starter);
    if (starters.count(first) == 0 || starters.count(own) == 0) return;
    const std::string text = fmt::format(
        "the launch line of step '{}' begins with '{}', and its platform puts '{}' before it: each "
        "task would start all of them again",
        step.name.value, first, strip(*starter));
    if (told_.insert({key(step.launch.mark), text}).second)
      diagnostics_.error(
          step.launch.mark, text,
          "write the program alone; the platform's `launcher` takes another starter");
  }

  // A run step's job and container are those of its launch line. Its commands run beside it, on
  // this machine, but for those that submit a script themselves.
  bool lacks_launch(const Step& step, const Lookup& lookup) {
    if (!step.launch.value.empty() || step.operations.empty()) return false;
    const std::string* named = job_value(lookup, "scheduler");
    const std::string scheduler(named == nullptr ? "local" : strip(*named));
    const bool no_job = !scheduler.empty() && scheduler != "local" && !submits(step, lookup) &&
                        (step.resources.any || has_platform(step));
    const bool no_container = !step.container.image.value.empty();
    if (!no_job) check_local_site(step, lookup);
    if (!no_job && !no_container) return false;
    const Mark& mark = no_container && !no_job ? step.container.image.mark : step.name.mark;
    const std::string what = no_job ? fmt::format("nothing is submitted (platform {})", scheduler)
                                    : "its container is not used";
    const std::string text =
        fmt::format("step '{}' has no `launch`: its commands run on this machine, and {}",
                    step.name.value, what);
    if (told_.insert({key(mark), text}).second)
      diagnostics_.warning(mark, text, "write the program's line as `launch`");
    return no_job;
  }

  // A platform of this machine sets variables for its launch line alone.
  void check_local_site(const Step& step, const Lookup& lookup) {
    if (step.platform.empty()) return;
    std::string kept;
    for (const auto& [name, word] : {std::pair{"site_modules", "modules"},
                                     std::pair{"site_interconnect_variables", "interconnect"},
                                     std::pair{"site_variables", "env"}}) {
      const std::string* value = lookup(name);
      if (value == nullptr || strip(*value).empty()) continue;
      kept += (kept.empty() ? "`" : ", `") + std::string(word) + "`";
    }
    if (kept.empty()) return;
    const std::string text =
        fmt::format("step '{}' has no `launch`: its commands run without its platform's {}",
                    step.name.value, kept);
    if (told_.insert({key(step.name.mark), text}).second)
      diagnostics_.warning(step.name.mark, text, "write the program's line as `launch`");
  }

  // Collects the steps that run on this machine and ask for more than it gives.
  void check_local(const Step& step, const Lookup& lookup) {
    if (step.kind != StepKind::run || !step.kinds->platform_of(step, lookup).local()) return;
    const Resources& asked = step.resources;
    if (asked.nodes.value.empty() && asked.tasks_per_node.value.empty() && step.platform.empty())
      return;
    // The step's, or its platform's: what the tables show.
    const auto number = [&](const Text& text, const char* of_platform) {
      const std::string* given = step.platform.empty() ? nullptr : job_value(lookup, of_platform);
      std::string value(strip(substitute(text.value, lookup)));
      if (value.empty() && given != nullptr) value = strip(*given);
      return is_whole(value, 1) ? std::stol(value.substr(0, 9)) : 1;
    };
    const std::string* starter = job_value(lookup, "starter");
    const bool starts_tasks =
        (starter != nullptr && !strip(*starter).empty() && !step.launch.value.empty()) ||
        names_tasks(step);
    const long nodes = number(asked.nodes, "nodes");
    const long tasks = starts_tasks ? 1 : nodes * number(asked.tasks_per_node, "taskspernode");
    if (nodes < 2 && tasks < 2) return;
    auto& [most_nodes, most_tasks] = beyond_local_[&step];
    most_nodes = std::max(most_nodes, nodes);
    most_tasks = std::max(most_tasks, tasks);
  }

  // The values stay in the tables, where they would be taken for what was used.
  void report_local() {
    for (const auto& [step, most] : beyond_local_) {
      const auto& [nodes, tasks] = most;
      const Resources& asked = step->resources;
      std::string what = nodes > 1 ? fmt::format("{} nodes", nodes) : std::string();
      if (tasks > 1) what += fmt::format("{}{} tasks", what.empty() ? "" : " and ", tasks);
      const Mark mark = (nodes > 1 ? asked.nodes : asked.tasks_per_node).mark;
      diagnostics_.note(mark.known() ? mark : step->name.mark,
                        fmt::format("step '{}' asks for up to {}, and runs on this machine "
                                    "(platform local){}",
                                    step->name.value, what,
                                    tasks < 2                    ? ", which is one node"
                                    : step->launch.value.empty() ? ", where its commands run once"
                                                                 : ", where its launch line "
                                                                   "starts one process"));
    }
  }

  // Collects the `active` of commands, so that Python evaluates each different text once.
  void check_operations(const Step& step, const Lookup& lookup) {
    for (const Operation& operation : step.operations) {
      const std::string& text = operation.active.value;
      if (text == "true" || text == "false") continue;
      const std::string value(strip(substitute(text, lookup)));
      if (has_dollar_name(value)) continue;
      actives_.try_emplace({key(operation.active.mark), value}, &step, &operation.active);
    }
  }

  // Reports unknown names and syntax errors, because they fail in a run too. Other failures may
  // have causes that are gone when the step runs.
  void evaluate_operations() {
    for (const auto& [where, what] : actives_) {
      bool active = false;
      const Status read =
          evaluate_active(where.second, planned_.run.expander().evaluator(), &active);
      const std::string& why = read.message();
      if (read || (why.find("is not defined") == std::string::npos &&
                   why.find("invalid syntax") == std::string::npos)) {
        continue;
      }
      diagnostics_.error(what.second->mark,
                         fmt::format("a command of step '{}': {}", what.first->name.value, why));
    }
  }

  // Checks the files that the first step's file sets and substitutions need.
  void check_sources(const Step& step, const Workpackage& workpackage, const Lookup& lookup) {
    bool whole = step.work_dir.value.empty();
    const std::vector<std::string> sets = used_sets(step, lookup);
    for (const std::string& name : sets) {
      const auto set = benchmark_.file_sets.find(name);
      if (set == benchmark_.file_sets.end()) continue;
      for (const auto& entry : set->second.entries) {
        const auto* copy = std::get_if<FileCopy>(&entry);
        if (copy == nullptr) return;  // a prepare command may create the files that follow
        whole = check_copy(step, *copy, lookup) && whole;
      }
    }
    if (!whole || workpackage.id != 0) return;
    // One substitution set may create what another one reads, so only a single set can be checked.
    std::vector<const SubstituteSet*> substitutions;
    for (const std::string& name : sets) {
      const auto set = benchmark_.substitute_sets.find(name);
      if (set != benchmark_.substitute_sets.end()) substitutions.push_back(&set->second);
    }
    if (substitutions.size() == 1) check_substitutions(step, *substitutions.front(), sets, lookup);
  }

  // Returns whether the sources are known and exist.
  bool check_copy(const Step& step, const FileCopy& copy, const Lookup& lookup) {
    const std::string source = substitute(copy.source.value, lookup);
    const std::string folder = substitute(copy.source_dir, lookup);
    if (copy.internal || copy.active.value != "true" || has_dollar_name(source + folder))
      return false;
    if (!looked_up_.insert({key(copy.source.mark), folder + "\n" + source}).second) return true;
    std::vector<PlannedFile> files;
    const Status found = list_files(copy, lookup, "", &files);
    if (found) return true;
    diagnostics_.error(copy.source.mark,
                       fmt::format("step '{}': {}", step.name.value, found.message()),
                       "relative paths start from the input file's folder");
    return false;
  }

  void check_substitutions(const Step& step, const SubstituteSet& set,
                           const std::vector<std::string>& sets, const Lookup& lookup) {
    for (const IoFile& file : set.files) {
      if (has_dollar_name(substitute(file.in.value, lookup))) return;
    }
    std::vector<FileBytes> made;
    const Status status = plan_substituted_files(benchmark_, sets, lookup,
                                                 planned_.run.expander().evaluator(), &made);
    if (status) return;
    diagnostics_.error(set.files.front().in.mark,
                       fmt::format("step '{}': {}", step.name.value, status.message()));
  }

  PlannedRun& planned_;
  const Benchmark& benchmark_;
  Diagnostics& diagnostics_;
  std::set<std::pair<MarkKey, std::string>> told_, looked_up_;
  std::map<std::pair<MarkKey, std::string>, std::pair<const Step*, const Text*>> actives_;
  std::map<const Step*, std::pair<long, long>> beyond_local_;  // most nodes and tasks
};

}  // namespace

void report_no_point(const Step& step, const Text& rule, size_t points, Diagnostics& diagnostics) {
  diagnostics.error(rule.mark,
                    fmt::format("step '{}' has no point: this rule leaves out {}", step.name.value,
                                points == 1 ? "its only one" : fmt::format("all {}", points)));
}

void check_planned(PlannedRun& planned, Diagnostics& diagnostics) {
  PlannedCheck(planned, diagnostics).run();
}

}  // namespace tally
