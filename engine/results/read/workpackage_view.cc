#include "engine/results/read/workpackage_view.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "engine/base/text.h"
#include "engine/results/read/patterns.h"
#include "engine/workpackage/ended_file.h"

namespace tally {

WorkpackagesById by_id(const std::vector<WorkpackageView>& workpackages) {
  WorkpackagesById list;
  list.reserve(workpackages.size());
  for (const WorkpackageView& workpackage : workpackages) list.push_back(&workpackage);
  const auto before = [](const auto* a, const auto* b) { return a->id < b->id; };
  if (!std::is_sorted(list.begin(), list.end(), before)) std::ranges::stable_sort(list, before);
  return list;
}

const WorkpackageView* find_id(const WorkpackagesById& workpackages, int id) {
  const auto found =
      std::lower_bound(workpackages.begin(), workpackages.end(), id,
                       [](const WorkpackageView* one, int wanted) { return one->id < wanted; });
  return found != workpackages.end() && (*found)->id == id ? *found : nullptr;
}

namespace {

// The names and globs that none of the files had. A file's path ends with its name.
std::vector<std::string> absent_names(const std::vector<EndedFile>& files) {
  std::vector<std::string> absent;
  for (const EndedFile& name : files) {
    if (name.stamp.there()) continue;
    const std::string end = "*/" + name.path;
    if (std::ranges::none_of(files, [&](const EndedFile& file) {
          return file.stamp.there() && ::fnmatch(end.c_str(), file.path.c_str(), 0) == 0;
        }))
      absent.push_back(name.path);
  }
  return absent;
}

}  // namespace

Status take_kept(const Journal& journal, const std::set<int>& ids,
                 std::vector<WorkpackageView>& views) {
  std::map<int, std::shared_ptr<WorkpackageView::Kept>> kept;
  Status read = journal.each_sample([&](const Sample& sample) {
    if (ids.count(sample.workpackage) == 0) return;
    auto& one = kept[sample.workpackage];
    if (!one) one = std::make_shared<WorkpackageView::Kept>();
    one->values[{sample.analyser, sample.pattern, sample.definition}] = sample.packed;
  });
  if (!read || kept.empty()) return read;
  read = journal.each_workpackage([&](Journal::Stored& stored) {
    const auto one = kept.find(stored.workpackage.id);
    if (one == kept.end()) return;
    one->second->absent = absent_names(EndedFiles::unpacked(stored.ended_files).files);
  });
  for (WorkpackageView& view : views) {
    if (const auto found = kept.find(view.id); found != kept.end()) view.kept = found->second;
  }
  return read;
}

std::optional<Statistics> WorkpackageView::Kept::matches(const Benchmark& benchmark,
                                                         const Analyser& analyser,
                                                         const Analyse& analyse,
                                                         const Pattern& pattern, int row) const {
  const std::string& name = pattern.name.value;
  std::string definition = definition_of(benchmark, analyser, analyse, name);
  if (row >= 0) definition = definition_of_row(definition, analyser, row);
  const auto found = values.find({analyser.name.value, name, definition});
  if (found == values.end()) return std::nullopt;
  return Statistics::unpacked(pattern.type, found->second);
}

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
    if (made.count(name) == 0 && std::ranges::any_of(unfinished, before))
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
    return std::ranges::count_if(views,
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
