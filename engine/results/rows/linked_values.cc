#include "engine/results/rows/linked_values.h"

#include <utility>

#include "engine/results/read/scan.h"
#include "engine/workflow/linked_files.h"

namespace tally {

LinkedFiles::LinkedFiles(const Benchmark& benchmark, const Analyser& analyser) {
  if (benchmark.as_jube) return;
  for (const Analyse& analyse : analyser.analyse) {
    std::vector<LinkedFile> linked;
    std::set<std::string> elsewhere;  // patterns that files of the step itself are searched for
    for (const AnalyseFile& file : analyse.files) {
      LinkedFile one{steps_read(benchmark, analyse, file), {}, {}};
      std::set<std::string>& names = one.steps.empty() ? elsewhere : one.patterns;
      for (const Pattern* pattern : patterns_for(benchmark, analyser, file))
        names.insert(pattern->name.value);
      if (!one.steps.empty()) linked.push_back(std::move(one));
    }
    for (LinkedFile& one : linked) {
      for (const std::string& name : one.patterns) {
        if (elsewhere.count(name) == 0) one.alone.insert(name);
      }
    }
    if (!linked.empty()) files_[&analyse] = std::move(linked);
  }
}

const std::vector<LinkedFile>& LinkedFiles::of(const Analyse* analyse) const {
  static const std::vector<LinkedFile> none;
  const auto found = files_.find(analyse);
  return found == files_.end() ? none : found->second;
}

}  // namespace tally
