#include "engine/results/read/kept_values.h"

#include <fnmatch.h>

#include <algorithm>
#include <map>
#include <memory>

#include "engine/results/read/patterns.h"
#include "engine/workpackage/ended_file.h"

namespace tally {
namespace {

// The names and globs that none of the files had. A file's path ends with its name.
std::vector<std::string> absent_names(const std::vector<EndedFile>& files) {
  std::vector<std::string> absent;
  for (const EndedFile& name : files) {
    if (name.stamp.there()) continue;
    const std::string end = "*/" + name.path;
    if (std::none_of(files.begin(), files.end(), [&](const EndedFile& file) {
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

std::optional<Statistics> kept_statistics(const WorkpackageView::Kept& kept,
                                          const Benchmark& benchmark, const Analyser& analyser,
                                          const Analyse& analyse, const Pattern& pattern, int row) {
  const std::string& name = pattern.name.value;
  std::string definition = definition_of(benchmark, analyser, analyse, name);
  if (row >= 0) definition = definition_of_row(definition, analyser, row);
  const auto found = kept.values.find({analyser.name.value, name, definition});
  if (found == kept.values.end()) return std::nullopt;
  return Statistics::unpacked(pattern.type, found->second);
}

}  // namespace tally
