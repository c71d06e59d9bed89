#include "engine/results/read/views.h"

#include <dirent.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>

#include "engine/base/files.h"
#include "engine/base/presence.h"
#include "engine/base/text.h"
#include "engine/journal/archived_copy.h"
#include "engine/results/read/changed_files.h"
#include "engine/results/read/outside_parts.h"
#include "engine/results/read/patterns.h"
#include "engine/results/read/workpackage_view.h"
#include "engine/workflow/table_names.h"
#include "engine/workpackage/ended_file.h"
#include "engine/workpackage/values.h"

namespace tally {
namespace {

void add_definitions(const Benchmark& benchmark, const Step& step, std::vector<const Step*>& seen,
                     DefinitionsByName& out) {
  if (contains(seen, &step)) return;
  seen.push_back(&step);
  for (const Text& use : step.use) {
    auto set = benchmark.parameter_sets.find(use.value);
    if (set == benchmark.parameter_sets.end()) continue;
    for (const Parameter& parameter : set->second.parameters) {
      out.try_emplace(parameter.name.value, &parameter);
    }
  }
  for (const Text& parent : step.depend) {
    if (const Step* found = benchmark.find_step(parent.value)) {
      add_definitions(benchmark, *found, seen, out);
    }
  }
}

const char* status_of(State state) {
  if (finished_well(state)) return "DONE";
  return has_failed(state) ? "ERROR" : "RUNNING";
}

// Every word of the texts that results are made from.
std::set<std::string, std::less<>> words_of_results(const Benchmark& benchmark) {
  std::set<std::string> words;
  for (const Pattern& pattern : all_patterns(benchmark)) {
    words.insert(pattern.name.value);
    add_words(pattern.value.value, words);
    if (pattern.default_value) add_words(*pattern.default_value, words);
  }
  for (const Analyser& analyser : benchmark.analysers) {
    for (const Text& use : analyser.use) add_words(use.value, words);
    for (const Analyse& analyse : analyser.analyse) {
      for (const AnalyseFile& file : analyse.files) {
        add_words(file.path.value, words);
        for (const Text& use : file.use) add_words(use.value, words);
      }
    }
  }
  for (const Result& result : benchmark.results) {
    for (const auto& output : result.outputs)
      words.merge(std::visit([](const auto& one) { return names_in(one); }, output));
  }
  return {words.begin(), words.end()};
}

// Whether a text names a value, alone or with a step (jube_wp_id_run), or one that begins so. The
// values that are not parameters are asked for: JUBE's variables, and those of the step's kind.
class IsNamed {
 public:
  explicit IsNamed(const std::set<std::string, std::less<>>& words)
      : words_(words.begin(), words.end()) {}
  bool operator()(std::string_view name) const {
    const auto word = std::lower_bound(words_.begin(), words_.end(), name);
    return word != words_.end() && starts_with(*word, name);
  }

 private:
  std::vector<std::string> words_;  // sorted
};

// The kinds of values: names with their types and units, but for plain texts.
struct Kinds {
  WorkpackageView::Types types;
  WorkpackageView::Units units;
  void add(const std::string& name, ValueType type, const std::string& unit) {
    if (type != ValueType::string) types.emplace_back(name, type);
    if (!unit.empty()) units.emplace_back(name, unit);
  }
  void add_all(const DefinitionsByName& definitions, const WorkpackageView& view) {
    for (const auto& [name, value] : view.values) {
      const auto found = definitions.find(name);
      if (found != definitions.end()) add(name, found->second->type, found->second->unit);
    }
  }
};

// The patterns' names, where they are the user's.
std::set<std::string> users_patterns(const Benchmark& benchmark) {
  std::set<std::string> names;
  if (!benchmark.rules.names_are_the_users) return names;
  for (const Pattern& pattern : all_patterns(benchmark)) names.insert(pattern.name.value);
  return names;
}

// `count` of the view's values are parameters. A pattern may have the name of a value that is meant
// for jobs.
void take_parameters(const WorkpackageValues& values, size_t count,
                     const std::set<std::string>& patterns, WorkpackageView& view) {
  view.parameters = count;
  for (const auto& [name, value] : values.added()) {
    const std::string* own = values.parameter(name);
    if (own != nullptr && !values.is_users(name)) view.hidden.emplace_back(name, *own);
  }
  if (patterns.empty()) return;
  for (auto& [name, value] : view.values)
    if (patterns.count(name) > 0 && values.is_for_jobs(name)) name = platform_name(name);
}

// Finds the definition by name, for a workflow that lacks the set.
const Parameter* named_in_step(const Benchmark& benchmark, const std::string& step,
                               const std::string& name) {
  DefinitionsByName parameters;
  std::vector<const Step*> seen;
  if (const Step* found = benchmark.find_step(step))
    add_definitions(benchmark, *found, seen, parameters);
  const auto found = parameters.find(name);
  return found == parameters.end() ? nullptr : found->second;
}

// Whether it may have done something. One that was put off before its first command has not.
bool has_worked(const Journal::Stored& stored) {
  const Workpackage& workpackage = stored.workpackage;
  if (workpackage.outcome.state != State::pending) return true;
  const bool put_off = workpackage.outcome.reason == Reason::host;
  return stored.started > 0 && (!put_off || stored.operations_done > 0 || workpackage.cycle > 0);
}

// Makes the views of a run's workpackages, in the order of their ids.
class ViewMaker {
 public:
  // `keep`: the values that are wanted. Empty: all.
  ViewMaker(const Benchmark& benchmark, const Journal& journal, const std::string& run_dir,
            WorkpackageValues::Keep keep, std::vector<WorkpackageView>& views)
      : benchmark_(benchmark),
        run_dir_(run_dir),
        absolute_run_(absolute_path(run_dir) + "/"),
        info_(run_info(benchmark, journal.run().id, run_dir, journal.run().start)),
        patterns_(users_patterns(benchmark)),
        keep_(std::move(keep)),
        views_(views) {
    for (const JobValue& one : job_values()) {
      if ((!keep_ || keep_(one.name)) && job_value(benchmark, one.name) != nullptr)
        job_values_.push_back(&one);
    }
  }

  // Reads what the journal has of workpackages beside themselves.
  Status read_measures(const Journal& journal) {
    TRY(journal.archived_from(&archived_from_));
    if (!archived_from_.empty()) info_.rundir = archived_from_;
    TRY(journal.job_uses(&job_uses_));
    return journal.disturbances(&disturbances_);
  }

  void add(Journal::Stored& from) {
    WorkpackageView view;
    const Workpackage& workpackage = from.workpackage;
    view.id = workpackage.id;
    view.run = info_.id;
    view.step = from.step;
    view.iteration = workpackage.iteration;
    view.cycle = workpackage.cycle;
    view.parents = workpackage.parents;
    StepValues& of_all = of_step(from);
    const Step* step = of_all.step;
    view.work_dir = from.work_dir.empty() ? absolute_run_ + from.directory + "/work"
                    : !archived_from_.empty()
                        ? absolute_run_ + from.directory + "/" + archived_work_dir
                        : absolute_path(from.work_dir);
    if (!from.work_dir.empty() && step != nullptr && step->kind == StepKind::run) {
      view.own_dir = absolute_path(run_dir_ + "/" + from.directory + "/work");
    }
    set_state(workpackage.outcome, step, view);
    if (benchmark_.rules.outside_files_are_guarded) view.began = has_worked(from);
    set_values(from, of_all, view);
    views_.push_back(std::move(view));
  }

 private:
  // The common part of a step's workpackages: JUBE's variables, and mostly the definitions that they
  // are made from and the kinds of their values.
  struct StepValues {
    const Step* step = nullptr;     // null: the workflow has it no more
    std::vector<std::string> keys;  // of the definitions
    DefinitionsByName definitions;  // of the last workpackage
    NamedValues all, kept;
    bool shows_added = false;              // whether a value of the step's kind is wanted
    Common<WorkpackageView::Types> types;  // of the last workpackage
    Common<WorkpackageView::Units> units;
  };

  void set_state(const Outcome& outcome, const Step* step, WorkpackageView& view) const {
    // A workpackage that waits for its done_file has written output. In JUBE's files, workpackages
    // that have not ended or not even started are shown too, with the values that exist. In ours
    // all are: a row that is not there would be missed by no reference and no comparison.
    const bool plain = step == nullptr || step->kind == StepKind::plain;
    const State state = outcome.state;
    view.finished = benchmark_.rules.rows_are_marked || finished_well(state) ||
                    state == State::failed || state == State::waiting ||
                    (plain ? state != State::lost : state == State::lost);
    view.state = state;
    view.reused = state == State::done && outcome.reason == Reason::reused;
    // Work that another workpackage of this run did was disturbed while that one ran.
    if (view.reused) view.worker = outcome.workpackage;
    if (const auto found = disturbances_.find(view.done_by()); found != disturbances_.end())
      view.disturbance = found->second;
    if (state == State::failed || state == State::expected ||
        (state == State::lost && benchmark_.rules.rows_are_marked)) {
      view.notes.push_back(fmt::format("workpackage {} ({}) {}: {}", view.id, view.step,
                                       state_name(state), message_in_short(outcome)));
    }
  }

  void set_values(Journal::Stored& from, StepValues& of_all, WorkpackageView& view) {
    const DefinitionsByName& known = of_all.definitions;
    StoredParameters parameters;
    const size_t count = from.parameters.size();
    parameters.values = std::move(from.parameters);
    parameters.definition = [&](const std::string& name) -> const Parameter* {
      const auto found = known.find(name);
      return found != known.end() ? found->second : nullptr;
    };
    for (const int parent : view.parents) parameters.parents.push_back({step_of(parent), parent});
    parameters.work_dir = named_work_dir(from, view);
    parameters.common = &of_all.all;
    parameters.kept = &of_all.kept;
    parameters.without_added = !of_all.shows_added && !hides_any(of_all.step, parameters.values);
    const WorkpackageValues values(of_all.step, from.workpackage, std::move(parameters),
                                   status_of(view.state));
    view.values = values.all(keep_);
    take_parameters(values, count, patterns_, view);
    view.values.shrink_to_fit();
    kinds_.types.clear();
    kinds_.units.clear();
    kinds_.add_all(known, view);
    if (!job_values_.empty()) add_job_values(from, view);
    view.types.take(kinds_.types, of_all.types);
    view.units.take(kinds_.units, of_all.units);
  }

  // Returns the folder in which the operations ran, which the run's values name: of a run out of an
  // archive it is another than the one whose files are read.
  const std::string& named_work_dir(const Journal::Stored& stored, const WorkpackageView& view) {
    if (archived_from_.empty()) return view.work_dir;
    if (!stored.work_dir.empty()) return stored.work_dir;
    work_dir_there_ = archived_from_ + "/" + stored.directory + "/work";
    return work_dir_there_;
  }

  // Whether the kind of step may hide one of the parameters.
  static bool hides_any(const Step* step, const NamedValues& parameters) {
    if (step == nullptr) return false;
    const std::vector<std::string_view>& names = step->kinds->value_names();
    return std::ranges::any_of(parameters, [&](const auto& entry) {
      return std::binary_search(names.begin(), names.end(), entry.first);
    });
  }

  StepValues& of_step(const Journal::Stored& stored) {
    const auto [found, is_new] = of_step_.try_emplace(stored.step);
    StepValues& values = found->second;
    if (values.keys != stored.definitions) {
      values.definitions = definitions_of(benchmark_, stored);
      values.keys = stored.definitions;
    }
    if (!is_new) return values;
    const Step* step = values.step = benchmark_.find_step(stored.step);
    values.all = run_builtins(info_, step);
    for (const auto& entry : values.all) {
      if (!keep_ || keep_(entry.first)) values.kept.push_back(entry);
    }
    if (step == nullptr) return values;
    const std::vector<std::string_view>& added = step->kinds->value_names();
    values.shows_added = !keep_ || std::ranges::any_of(added, keep_);
    return values;
  }

  // Adds the values that the scheduler has recorded of its job.
  void add_job_values(const Journal::Stored& stored, WorkpackageView& view) {
    view.no_job_use = "it did not run in a job";
    if (stored.job_id.empty()) return;
    const auto found = job_uses_.find(view.id);
    const JobUse use = found == job_uses_.end() ? JobUse{} : found->second;
    view.no_job_use = use.why;
    const auto whole = [](const std::optional<double>& value) {
      return value ? fmt::format("{:.0f}", *value) : std::string();
    };
    const std::map<std::string_view, std::string> values = {
        {"job_id", stored.job_id},
        {"job_nodes", use.nodes},
        {"job_elapsed", whole(use.seconds)},
        {"job_energy", whole(use.joules)},
        {"job_max_rss", use.max_rss ? fmt::format("{:.6g}", *use.max_rss) : ""}};
    for (const JobValue* value : job_values_) {
      const std::string& text = values.at(value->name);
      if (text.empty()) continue;
      view.values.emplace_back(value->name, text);
      kinds_.add(value->name, value->type, value->unit);
    }
  }

  // Parents have lower ids, so that their views are made already.
  std::string step_of(int id) const {
    const auto found =
        std::lower_bound(views_.begin(), views_.end(), id,
                         [](const WorkpackageView& view, int wanted) { return view.id < wanted; });
    return found != views_.end() && found->id == id ? found->step : std::string();
  }

  const Benchmark& benchmark_;
  const std::string& run_dir_;
  const std::string absolute_run_;  // with a slash
  std::string archived_from_;       // where the run was, if it is out of an archive
  std::string work_dir_there_;      // of the workpackage that is being made
  RunInfo info_;
  std::map<int, Disturbance> disturbances_;
  std::map<int, JobUse> job_uses_;
  std::vector<const JobValue*> job_values_;  // those that are wanted
  std::set<std::string> patterns_;
  std::unordered_map<std::string, StepValues> of_step_;
  Kinds kinds_;                   // of the workpackage that is being made
  WorkpackageValues::Keep keep_;  // empty: everything
  std::vector<WorkpackageView>& views_;
};

}  // namespace

namespace {

// The ids of the workpackages that have a folder in the run's, in order. A folder's name begins
// with its workpackage's id, as "000012_step". The names are not kept, because there may be many.
Status ids_of_folders(const std::string& run_dir, std::vector<int>* ids) {
  Status listed = each_entry(run_dir, [ids](const dirent& entry) {
    char* rest = nullptr;
    const long id = std::strtol(entry.d_name, &rest, 10);
    if (rest != entry.d_name && *rest == '_') ids->push_back(static_cast<int>(id));
  });
  std::ranges::sort(*ids);
  return listed;
}

}  // namespace

DefinitionsByName definitions_of(const Benchmark& benchmark, const Journal::Stored& stored) {
  DefinitionsByName definitions;
  for (size_t i = 0; i < stored.parameters.size(); ++i) {
    const std::string& name = stored.parameters[i].first;
    const Parameter* parameter = find_definition(benchmark, stored.definitions[i]);
    if (parameter == nullptr) parameter = named_in_step(benchmark, stored.step, name);
    if (parameter != nullptr) definitions.emplace(name, parameter);
  }
  return definitions;
}

bool shows_job_use(const Benchmark& benchmark) {
  const IsNamed named(words_of_results(benchmark));  // job_energy_median, too
  return std::any_of(job_values().begin(), job_values().end(), [&](const JobValue& value) {
    return value.type != ValueType::string && named(value.name) &&
           job_value(benchmark, value.name) != nullptr;
  });
}

Status workpackage_views(const Benchmark& benchmark, const Journal& journal,
                         const std::string& run_dir, std::vector<WorkpackageView>* views,
                         bool all_builtins) {
  size_t count = 0;
  TRY(journal.count(&count));
  views->clear();
  views->reserve(count);
  std::set<int> gone;
  std::optional<std::vector<int>> folders;
  if (bool has = false; benchmark.rules.values_are_kept) {
    TRY(journal.has_samples(&has));
    if (has) {
      TRY(ids_of_folders(run_dir, &folders.emplace()));
    }
  }
  WorkpackageValues::Keep keep;
  if (!all_builtins) keep = IsNamed(words_of_results(benchmark));
  ViewMaker maker(benchmark, journal, run_dir, std::move(keep), *views);
  TRY(maker.read_measures(journal));
  const auto changed_files = std::make_shared<ChangedFiles>(journal, run_dir);
  Status read = journal.each_workpackage([&](Journal::Stored& stored) {
    const int id = stored.workpackage.id;
    const bool has_folder = !folders || std::binary_search(folders->begin(), folders->end(), id);
    if (!has_folder && finished_well(stored.workpackage.outcome.state)) gone.insert(id);
    maker.add(stored);
    if (files_print(stored.ended_files) == 0 || !finished_well(stored.workpackage.outcome.state))
      return;
    WorkpackageView& view = views->back();
    view.files_at_end = files_print(stored.ended_files);
    view.files_noted_ns = files_noted_ns(stored.ended_files);
    view.changed_files = changed_files;
  });
  if (!read) return read;
  if (benchmark.rules.outside_files_are_guarded) {
    TRY(take_outside_files(journal, run_dir, views));
    for (const WorkpackageView& view : *views) {
      if (view.outside_changed && finished_well(view.state)) gone.insert(view.id);
    }
  }
  return gone.empty() ? Status::ok() : take_kept(journal, gone, *views);
}

WorkpackageView planned_view(const Benchmark& benchmark, const Expander& expander,
                             const Workpackage& workpackage, const std::string& log) {
  const Step& step = benchmark.steps[static_cast<size_t>(workpackage.step)];
  WorkpackageView view;
  view.id = workpackage.id;
  view.step = step.name.value;
  view.iteration = workpackage.iteration;
  view.finished = true;
  view.log = absolute_path(log);
  view.work_dir = view.log.substr(0, view.log.rfind('/'));
  Workpackage there = workpackage;  // its work directory is the folder of the log
  there.work_dir = view.work_dir;
  const WorkpackageValues values(benchmark, expander, there, "DONE");
  view.values = values.all();
  view.run = std::atoi(values.find("jube_benchmark_id")->c_str());
  take_parameters(values, workpackage.point.bindings.size(), users_patterns(benchmark), view);
  DefinitionsByName definitions;
  for (const Binding& binding : workpackage.point.bindings) {
    definitions.emplace(expander.pool()[binding.name], &expander.definition(binding));
  }
  Kinds kinds;
  kinds.add_all(definitions, view);
  view.types = std::move(kinds.types);
  view.units = std::move(kinds.units);
  return view;
}

}  // namespace tally
