#include "engine/workpackage/lineage.h"

#include <algorithm>
#include <charconv>

#include "engine/base/text.h"
#include "engine/workpackage/workpackage.h"

namespace tally {

std::string workpackage_directory_name(int id, const std::string& step, const std::string& suffix) {
  std::string name = padded_id(id) + "_" + step;
  if (!suffix.empty()) name += "_" + suffix;
  // Values of parameters may hold anything. A slash would make folders, and the length of a name is
  // limited.
  std::replace(name.begin(), name.end(), '/', '_');
  if (name.size() > 200) name.resize(200);
  return name;
}

std::string folder_name_of(const Benchmark& benchmark, const Workpackage& workpackage) {
  if (!workpackage.directory.empty()) return workpackage.directory;
  const Step& step = benchmark.steps[static_cast<size_t>(workpackage.step)];
  return workpackage_directory_name(workpackage.id, step.name.value, "");
}

std::string work_dir_of(const Benchmark& benchmark, const std::string& run_dir,
                        const Workpackage& workpackage) {
  if (!workpackage.work_dir.empty()) return workpackage.work_dir;
  return run_dir + "/" + folder_name_of(benchmark, workpackage) + "/work";
}

namespace {

Status read_count(const Step& step, const char* key, const Text& text, const Lookup& lookup,
                  int* count) {
  if (text.value.empty()) return Status::ok();
  const std::string value(strip(substitute(text.value, lookup)));
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), *count);
  if (error == std::errc() && end == value.data() + value.size() && *count >= 1) {
    return Status::ok();
  }
  return Status::error("step '" + step.name.value + "': " + key + "=\"" + value +
                       "\" is not a whole number of at least 1");
}

}  // namespace

int step_index(const Benchmark& benchmark, const std::string& name) {
  for (size_t i = 0; i < benchmark.steps.size(); ++i) {
    if (benchmark.steps[i].name.value == name) return static_cast<int>(i);
  }
  return -1;
}

Status count_copies(const Step& step, const Lookup& lookup, Copies* copies) {
  TRY(read_count(step, "iterations", step.iterations, lookup, &copies->iterations));
  return read_count(step, "repeat", step.repeat, lookup, &copies->repeat);
}

FinishedWorkpackages::FinishedWorkpackages(const Benchmark& benchmark, const Expander& expander)
    : expander_(expander), steps_(benchmark.steps.size()) {
  for (const Step& step : benchmark.steps) {
    if (step.depend.size() < 2) continue;
    for (const Text& name : step.depend) {
      const int parent = step_index(benchmark, name.value);
      if (parent >= 0) steps_[static_cast<size_t>(parent)].joined = true;
    }
  }
}

void FinishedWorkpackages::add(const Workpackage& workpackage) {
  OfStep& step = steps_[static_cast<size_t>(workpackage.step)];
  step.ids.push_back(workpackage.id);
  if (!step.joined) return;
  for (const Binding& b : workpackage.point.bindings) {
    if (expander_.definition(b).update != UpdateMode::never || !expander_.is_final(b)) continue;
    ++step.names[b.name];
    step.by_value[{b.name, b.value, b.index}].push_back(workpackage.id);
  }
}

const std::vector<int>& FinishedWorkpackages::of_step(int step) const {
  return steps_[static_cast<size_t>(step)].ids;
}

const std::vector<int>& FinishedWorkpackages::agreeing(int step_number, const Point& point) const {
  const OfStep& step = steps_[static_cast<size_t>(step_number)];
  const std::vector<int>* best = &step.ids;
  if (!step.joined) return *best;
  for (const Binding& b : point.bindings) {
    if (expander_.definition(b).update != UpdateMode::never || !expander_.is_final(b)) continue;
    // A parameter excludes workpackages only if all of the step's workpackages have it.
    const auto count = step.names.find(b.name);
    if (count == step.names.end() || count->second != step.ids.size()) continue;
    const auto found = step.by_value.find({b.name, b.value, b.index});
    if (found == step.by_value.end()) return none_;
    if (found->second.size() < best->size()) best = &found->second;
  }
  return *best;
}

void for_each_parents(const Benchmark& benchmark, const Step& child, const Workpackage& finished,
                      const FinishedWorkpackages& others,
                      const std::function<bool(const std::vector<int>&)>& take) {
  struct Choice {
    size_t position;  // in `depend`
    std::vector<int> ids;
  };
  std::vector<Choice> choices;
  for (size_t position = 0; position < child.depend.size(); ++position) {
    const int step = step_index(benchmark, child.depend[position].value);
    if (step < 0) return;
    choices.push_back({position, step == finished.step ? std::vector<int>{finished.id}
                                                       : others.agreeing(step, finished.point)});
    if (choices.back().ids.empty()) return;
  }
  std::ranges::sort(choices, [&](const Choice& a, const Choice& b) {
    return child.depend[a.position].value < child.depend[b.position].value;
  });
  std::vector<int> parents(choices.size());
  std::vector<size_t> at(choices.size(), 0);
  for (bool more = true; more;) {
    for (size_t k = 0; k < choices.size(); ++k)
      parents[choices[k].position] = choices[k].ids[at[k]];
    if (!take(parents)) return;
    more = false;
    for (size_t k = choices.size(); k-- > 0 && !more;) {
      more = ++at[k] < choices[k].ids.size();
      if (!more) at[k] = 0;
    }
  }
}

int iteration_base(std::vector<ParentIteration> parents) {
  std::ranges::sort(parents, [](const auto& a, const auto& b) { return a.step < b.step; });
  int base = 0;
  for (const ParentIteration& parent : parents) base = base * parent.copies + parent.iteration;
  return base;
}

}  // namespace tally
