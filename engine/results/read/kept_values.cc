#include "engine/results/read/kept_values.h"

#include <map>
#include <memory>

#include "engine/results/read/patterns.h"

namespace tally {

Status take_kept(const Journal& journal, const std::set<int>& ids,
                 std::vector<WorkpackageView>& views) {
  std::map<int, std::shared_ptr<WorkpackageView::Kept>> kept;
  Status read = journal.each_sample([&](const Sample& sample) {
    if (ids.count(sample.workpackage) == 0) return;
    auto& one = kept[sample.workpackage];
    if (!one) one = std::make_shared<WorkpackageView::Kept>();
    (*one)[{sample.analyser, sample.pattern, sample.definition}] = sample.packed;
  });
  for (WorkpackageView& view : views) {
    if (const auto found = kept.find(view.id); found != kept.end()) view.kept = found->second;
  }
  return read;
}

std::optional<Statistics> kept_statistics(const WorkpackageView::Kept& kept,
                                          const Benchmark& benchmark, const Analyser& analyser,
                                          const Analyse& analyse, const Pattern& pattern) {
  const std::string& name = pattern.name.value;
  const auto found =
      kept.find({analyser.name.value, name, definition_of(benchmark, analyser, analyse, name)});
  if (found == kept.end()) return std::nullopt;
  return Statistics::unpacked(pattern.type, found->second);
}

}  // namespace tally
