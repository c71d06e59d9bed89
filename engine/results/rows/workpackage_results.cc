#include "engine/results/rows/workpackage_results.h"

#include <map>
#include <memory>

#include "engine/results/read/match_statistics.h"
#include "engine/results/rows/analysed_patterns.h"
#include "engine/results/rows/derived.h"

namespace tally {
namespace {

// The values that the files of one step's groups hold, one line a group.
std::vector<Line> lines_of(const Analyse& analyse, const AnalysedPatterns& patterns,
                           const Groups& groups, WorkpackagesById* workpackages) {
  std::vector<Line> lines;
  const auto columns = std::make_shared<RowColumns>();
  for (const Group& group : groups.all()) {
    if (group.members.front()->step != analyse.step.value) continue;
    Line& line = lines.emplace_back();
    line.values = Cells(columns);
    line.parameters = &group.members.front()->values;
    for (const auto& [name, statistics] : group.all.found) {
      statistics.store(name, [&](const std::string& one, Value value) {
        line.values.set(one, std::move(value));
      });
    }
    for (const Pattern* pattern : patterns.of(&analyse)) {
      if (patterns.applies(*pattern, group.all.files)) {
        add_default(*pattern, line.values);
      } else {
        line.left_out.push_back(pattern);
      }
    }
    workpackages->push_back(group.members.front());
  }
  return lines;
}

}  // namespace

std::vector<WorkpackageResult> workpackage_results(const Benchmark& benchmark,
                                                   const Analyser& analyser,
                                                   const AnalysedPatterns& known,
                                                   const Groups& groups, Evaluator& evaluator) {
  std::vector<WorkpackageResult> results;
  Diagnostics said_elsewhere;
  for (const Analyse& analyse : analyser.analyse) {
    const std::vector<const Pattern*>& patterns = known.of(&analyse);
    std::vector<const Pattern*> derived;
    for (const Pattern* pattern : patterns) {
      if (pattern->mode != PatternMode::pattern) derived.push_back(pattern);
    }
    WorkpackagesById workpackages;
    std::vector<Line> lines = lines_of(analyse, known, groups, &workpackages);
    derive({benchmark, evaluator, said_elsewhere}, derived, lines);
    for (size_t i = 0; i < lines.size(); ++i) {
      WorkpackageResult& result = results.emplace_back();
      result.id = workpackages[i]->id;
      result.step = analyse.step.value;
      for (const Pattern* pattern : patterns) {
        for (const auto& [which, name] : all_statistics(pattern->name.value)) {
          if (const Value* value = lines[i].values.find(name))
            result.values.emplace_back(name, *value);
        }
      }
    }
  }
  return results;
}

void take_samples(const Benchmark& benchmark, const Analyser& analyser, const Groups& groups,
                  std::vector<Sample>* samples) {
  std::map<std::pair<const Analyse*, std::string>, std::string> definitions;
  for (const Group& group : groups.all()) {
    for (size_t i = 0; i < group.members.size(); ++i) {
      // A workpackage that goes on may print more.
      if (!finished_well(group.members[i]->state)) continue;
      // Changed output is no measurement, and what the journal has kept stays.
      if (!group.members[i]->changes.empty()) continue;
      const Analyse* analyse = groups.find(group.members[i]->step);
      for (const auto& [name, statistics] : group.of_member(i).found) {
        if (analyse == nullptr || statistics.count() == 0) continue;
        std::string& definition = definitions[{analyse, name}];
        if (definition.empty()) definition = definition_of(benchmark, analyser, *analyse, name);
        samples->push_back({group.members[i]->id, analyser.name.value, name, definition,
                            statistics.first().str(), statistics.packed()});
      }
      int number = 0;
      for (const MatchedRow& row : group.of_member(i).rows) {
        for (const auto& [name, statistics] : row.found) {
          samples->push_back({group.members[i]->id, analyser.name.value, name,
                              definition_of_row(definitions.at({analyse, name}), analyser, number),
                              statistics.first().str(), statistics.packed()});
        }
        ++number;
      }
    }
  }
}

}  // namespace tally
