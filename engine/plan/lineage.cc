#include "engine/plan/lineage.h"

#include <algorithm>
#include <charconv>

#include "engine/base/text.h"

namespace tally {
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
  if (Status s = read_count(step, "iterations", step.iterations, lookup, &copies->iterations); !s) {
    return s;
  }
  return read_count(step, "repeat", step.repeat, lookup, &copies->repeat);
}

std::vector<std::vector<int>> parent_combinations(
    const Benchmark& benchmark, const Step& child, int finished, int finished_step,
    const std::function<const std::vector<int>&(int step)>& done_of) {
  struct Choice {
    size_t place;  // in `depend`
    std::vector<int> ids;
  };
  std::vector<Choice> choices;
  for (size_t place = 0; place < child.depend.size(); ++place) {
    const int step = step_index(benchmark, child.depend[place].value);
    if (step < 0) return {};
    choices.push_back({place, step == finished_step ? std::vector<int>{finished} : done_of(step)});
    if (choices.back().ids.empty()) return {};
  }
  std::sort(choices.begin(), choices.end(), [&](const Choice& a, const Choice& b) {
    return child.depend[a.place].value < child.depend[b.place].value;
  });
  std::vector<std::vector<int>> all;
  std::vector<size_t> at(choices.size(), 0);
  for (bool more = true; more;) {
    std::vector<int>& parents = all.emplace_back(choices.size());
    for (size_t k = 0; k < choices.size(); ++k) parents[choices[k].place] = choices[k].ids[at[k]];
    more = false;
    for (size_t k = choices.size(); k-- > 0 && !more;) {
      more = ++at[k] < choices[k].ids.size();
      if (!more) at[k] = 0;
    }
  }
  return all;
}

int iteration_base(std::vector<ParentIteration> parents) {
  std::sort(parents.begin(), parents.end(),
            [](const auto& a, const auto& b) { return a.step < b.step; });
  int base = 0;
  for (const ParentIteration& parent : parents) base = base * parent.copies + parent.iteration;
  return base;
}

}  // namespace tally
