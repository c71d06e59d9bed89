#include "engine/results/read/run_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "engine/base/text.h"

namespace tally {
namespace {

// The steps that follow an unfinished one, of which no workpackage has been made yet.
std::string later_steps(const Benchmark& benchmark, const std::vector<WorkpackageView>& views) {
  std::set<std::string> made, unfinished;
  for (const WorkpackageView& view : views) {
    made.insert(view.step);
    if (!has_ended(view.state)) unfinished.insert(view.step);
  }
  std::vector<std::string> names;
  for (const Step& step : benchmark.steps) {
    const std::string& name = step.name.value;
    const auto before = [&](const auto& one) { return depends_on(benchmark, name, one); };
    if (made.count(name) == 0 && std::any_of(unfinished.begin(), unfinished.end(), before))
      names.push_back("'" + name + "'");
  }
  return names.empty() ? "" : " and none of " + join(names, ", ") + " has been made";
}

}  // namespace

std::string unfinished_note(const Benchmark& benchmark, const std::vector<WorkpackageView>& views) {
  if (views.empty()) {
    return "it has no workpackages and thus no rows: it has just begun, was ended before the first "
           "one, or none of its steps is active";
  }
  const auto count = [&](State state) {
    return std::count_if(views.begin(), views.end(),
                         [&](const WorkpackageView& view) { return view.state == state; });
  };
  const auto running = count(State::running);
  const auto waiting = count(State::waiting);
  const auto pending = count(State::pending);
  const auto open = running + waiting + pending;
  if (open == 0) return {};
  std::vector<std::string> parts;
  if (running != 0) parts.push_back(fmt::format("{} running", running));
  if (waiting != 0) parts.push_back(fmt::format("{} waiting for `continue`", waiting));
  if (pending != 0) parts.push_back(fmt::format("{} not begun", pending));
  return fmt::format("{} of {} workpackages {} not ended ({}){}: rows or values may be missing; {}",
                     open, views.size(), open == 1 ? "has" : "have", join(parts, ", "),
                     later_steps(benchmark, views),
                     waiting == open ? "`continue` looks whether what they wait for is there"
                                     : "`continue` runs what is left");
}

std::string changed_note(const Benchmark& benchmark, const std::vector<WorkpackageView>& views) {
  constexpr size_t kMost = 3;
  size_t count = 0, marked = 0;
  std::string which;
  for (const WorkpackageView& view : views) {
    if (view.changes.empty()) continue;
    if (view.state == State::changed) ++marked;
    if (++count > kMost) continue;
    const WorkpackageView::Change& first = view.changes.front();
    which +=
        fmt::format("; workpackage {} ({}): '{}' {}", view.id, view.step, first.path, first.text);
  }
  if (count == 0 || (marked == 0 && benchmark.rules.values_are_kept))
    return {};  // with the journal's values
  return fmt::format("the output of {} of {} workpackages has changed since {} ended: {}{}{}",
                     count, views.size(), count == 1 ? "it" : "they",
                     benchmark.rules.values_are_kept
                         ? "it counts in nothing, and rows that show it are marked CHANGED"
                         : "the values are those of the files as they are now",
                     which, count > kMost ? "; ..." : "");
}

}  // namespace tally
