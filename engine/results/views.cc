#include "engine/results/views.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>
#include <variant>

#include "engine/base/text.h"
#include "engine/execute/files/run_directory.h"
#include "engine/results/table_names.h"
#include "engine/workpackage/values.h"

namespace tally {
namespace {

void add_sets(const Benchmark& benchmark, const Step& step, std::vector<const Step*>& seen,
              DefinitionsByName& out) {
  if (std::find(seen.begin(), seen.end(), &step) != seen.end()) return;
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
      add_sets(benchmark, *found, seen, out);
    }
  }
}

const char* status_of(State state) {
  if (finished_well(state)) return "DONE";
  return state == State::failed || state == State::lost ? "ERROR" : "RUNNING";
}

// Every word of the texts that results are made from.
std::set<std::string> words_of_results(const Benchmark& benchmark) {
  std::set<std::string> words = {"jube_benchmark_id"};
  for (const auto& [set_name, set] : benchmark.pattern_sets) {
    for (const Pattern& pattern : set.patterns) {
      words.insert(pattern.name.value);
      add_words(pattern.value.value, words);
      if (pattern.default_value) add_words(*pattern.default_value, words);
    }
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
  return words;
}

// Drops what no text names, alone or with a step (jube_wp_id_run), of the values that are not
// parameters: JUBE's variables, and those of the step's kind. `parameters`: how many come first.
void keep_named(const std::set<std::string>& words, size_t parameters, WorkpackageView& view) {
  auto& values = view.values;
  const auto begin = values.begin() + static_cast<std::ptrdiff_t>(parameters);
  values.erase(std::remove_if(begin, values.end(),
                              [&](const auto& entry) {
                                const auto word = words.lower_bound(entry.first);
                                return word == words.end() || !starts_with(*word, entry.first);
                              }),
               values.end());
  values.shrink_to_fit();
}

void add_types(const DefinitionsByName& definitions, WorkpackageView& view) {
  for (const auto& [name, value] : view.values) {
    auto found = definitions.find(name);
    if (found == definitions.end()) continue;
    if (found->second->type != ValueType::string) {
      view.types.emplace_back(name, found->second->type);
    }
    if (!found->second->unit.empty()) view.units.emplace_back(name, found->second->unit);
  }
}

// Finds the definition by name, for a workflow that lacks the set.
const Parameter* named_in_step(const Benchmark& benchmark, const std::string& step,
                               const std::string& name) {
  DefinitionsByName parameters;
  std::vector<const Step*> seen;
  if (const Step* found = benchmark.find_step(step)) add_sets(benchmark, *found, seen, parameters);
  const auto found = parameters.find(name);
  return found == parameters.end() ? nullptr : found->second;
}

// A cache, because most workpackages of a step are made from the same definitions.
class KnownDefinitions {
 public:
  explicit KnownDefinitions(const Benchmark& benchmark) : benchmark_(benchmark) {}
  const DefinitionsByName& of(const Journal::Stored& stored) {
    auto& [keys, known] = of_step_[stored.step];
    if (keys != stored.definitions) {
      known = definitions_of(benchmark_, stored);
      keys = stored.definitions;
    }
    return known;
  }

 private:
  const Benchmark& benchmark_;
  std::unordered_map<std::string, std::pair<std::vector<std::string>, DefinitionsByName>> of_step_;
};

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

Status workpackage_views(const Benchmark& benchmark, const Journal& journal,
                         const std::string& run_dir, std::vector<WorkpackageView>* views,
                         bool all_builtins) {
  const std::set<std::string> words = words_of_results(benchmark);
  const RunRecord& run = journal.run();
  RunInfo info = run_info(benchmark, run.id, run_dir, run.start);
  std::vector<Journal::Stored> stored;
  if (Status s = journal.workpackages(&stored); !s) return s;
  std::unordered_map<int, std::string> step_names;
  std::unordered_map<std::string, NamedValues> common;
  for (const Journal::Stored& workpackage : stored) {
    step_names[workpackage.workpackage.id] = workpackage.step;
    if (common.try_emplace(workpackage.step).second) {
      common[workpackage.step] = run_builtins(info, benchmark.find_step(workpackage.step));
    }
  }
  std::map<int, Disturbance> disturbances;
  if (Status s = journal.disturbances(&disturbances); !s) return s;
  const std::string absolute_run = absolute_path(run_dir);
  KnownDefinitions definitions(benchmark);
  views->clear();
  views->reserve(stored.size());
  for (Journal::Stored& from : stored) {
    WorkpackageView view;
    const Workpackage& workpackage = from.workpackage;
    view.id = workpackage.id;
    view.step = from.step;
    view.iteration = workpackage.iteration;
    view.cycle = workpackage.cycle;
    view.parents = workpackage.parents;
    std::string shown =
        from.work_dir.empty() ? run_dir + "/" + from.directory + "/work" : from.work_dir;
    view.work_dir = from.work_dir.empty() ? absolute_run + "/" + from.directory + "/work"
                                          : absolute_path(shown);
    const Step* step = benchmark.find_step(from.step);
    if (!from.work_dir.empty() && step != nullptr && step->kind == StepKind::run) {
      view.own_dir = absolute_path(run_dir + "/" + from.directory + "/work");
    }
    // A workpackage that waits for its done_file has written output. In JUBE mode, workpackages
    // that have not ended or not even started are shown too, with the values that exist.
    const bool plain = step == nullptr || step->kind == StepKind::plain;
    const State state = workpackage.outcome.state;
    view.finished = finished_well(state) || state == State::failed || state == State::waiting ||
                    (plain ? state != State::lost || !benchmark.as_jube : state == State::lost);
    view.state = state;
    if (const auto found = disturbances.find(view.id); found != disturbances.end())
      view.disturbance = found->second;
    view.reused = state == State::done && workpackage.outcome.reason == Reason::reused;
    if (state == State::failed || state == State::expected ||
        (state == State::lost && !benchmark.as_jube)) {
      const std::string why = message(workpackage.outcome);
      view.notes.push_back(fmt::format("workpackage {} ({}) {}: {}", workpackage.id, from.step,
                                       state_name(state), why.substr(0, why.find('\n'))));
    }
    const DefinitionsByName& known = definitions.of(from);
    const size_t parameters_count = from.parameters.size();
    StoredParameters parameters;
    parameters.values = std::move(from.parameters);
    parameters.exported = [&](const std::string& name) {
      const auto found = known.find(name);
      return found != known.end() && found->second->exported;
    };
    for (int parent : workpackage.parents)
      parameters.parents.push_back({step_names[parent], parent});
    parameters.work_dir = shown;
    parameters.absolute_work_dir = view.work_dir;
    parameters.common = &common[from.step];
    const WorkpackageValues values(step, workpackage, std::move(parameters),
                                   status_of(workpackage.outcome.state));
    view.values = values.all();
    if (!all_builtins) keep_named(words, parameters_count, view);
    add_types(known, view);
    views->push_back(std::move(view));
    from = {};  // both lists of a large run would not fit in memory well
  }
  return Status::ok();
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
  view.values = WorkpackageValues(benchmark, expander, there, "DONE").all();
  DefinitionsByName definitions;
  for (const Binding& binding : workpackage.point.bindings) {
    definitions.emplace(expander.pool()[binding.name], &expander.definition(binding));
  }
  add_types(definitions, view);
  return view;
}

}  // namespace tally
