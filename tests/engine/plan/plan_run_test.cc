// What a plan says is what a run does: the same workpackages with the same ids, parents, iterations
// and values, for every input that is compared with JUBE.
#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <memory>

#include "engine/plan/plan.h"
#include "tests/engine/execute/run_fixture.h"
#include "tests/engine/expand/small_workflow.h"

namespace tally {
namespace {

std::vector<std::string> cases() {
  std::ifstream file(TALLY_SOURCE_DIR "/tests/engine/plan/jube_peer_cases.yaml");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> found;
  const std::string bar = "\n---\n";
  for (size_t at = text.find(bar); at != std::string::npos;) {
    const size_t begin = at + bar.size();
    at = text.find(bar, begin);
    found.push_back(text.substr(begin, at == std::string::npos ? at : at - begin));
  }
  return found;
}

std::string line_of(const Benchmark& benchmark, const Workpackage& workpackage,
                    const std::vector<std::pair<std::string, std::string>>& parameters) {
  std::string line = std::to_string(workpackage.id);
  line.append(" ").append(benchmark.steps[static_cast<size_t>(workpackage.step)].name.value);
  line.append(" iteration ").append(std::to_string(workpackage.iteration));
  for (const int id : workpackage.parents) line.append(" <").append(std::to_string(id));
  for (const auto& [name, value] : parameters) {
    line.append(" ").append(name).append("=").append(value);
  }
  return line;
}

std::vector<std::string> planned(const Benchmark& benchmark) {
  TextPool pool;
  const auto evaluator = make_evaluator("");
  Expander expander(benchmark, {}, *evaluator, pool, {});
  Diagnostics diagnostics;
  const Plan plan = make_plan(benchmark, expander, diagnostics);
  std::vector<std::string> lines;
  for (const Workpackage& workpackage : plan.workpackages) {
    std::vector<std::pair<std::string, std::string>> values;
    for (const Binding& b : workpackage.point.bindings) {
      // An update in a later cycle is the run's own.
      if (expander.definition(b).update == UpdateMode::cycle) continue;
      values.emplace_back(pool[b.name], pool[b.value]);
    }
    lines.push_back(line_of(benchmark, workpackage, values));
  }
  return lines;
}

TEST_CASE("every planned workpackage is run as planned") {
  size_t compared = 0;
  for (const std::string& yaml : cases()) {
    CAPTURE(yaml);
    testing::RunFixture run;
    run.benchmark = testing::small_workflow(yaml);
    for (Step& step : run.benchmark.steps) step.operations.clear();
    run.run();
    std::vector<std::string> done;
    for (const Journal::Stored& stored : run.stored()) {
      Workpackage workpackage = stored.workpackage;
      for (size_t i = 0; i < run.benchmark.steps.size(); ++i) {
        if (run.benchmark.steps[i].name.value == stored.step)
          workpackage.step = static_cast<int>(i);
      }
      std::vector<std::pair<std::string, std::string>> values;
      for (const auto& [name, value] : stored.parameters) {
        bool cycles = false;
        for (const auto& [set_name, set] : run.benchmark.parameter_sets) {
          for (const Parameter& p : set.parameters) {
            cycles = cycles || (p.name.value == name && p.update == UpdateMode::cycle);
          }
        }
        if (!cycles) values.emplace_back(name, value);
      }
      done.push_back(line_of(run.benchmark, workpackage, values));
    }
    CHECK(done == planned(run.benchmark));
    ++compared;
  }
  CHECK(compared > 50);
}

TEST_CASE("repetitions run after all points ran once, also those of different parents") {
  testing::RunFixture run;
  run.benchmark = testing::small_workflow(R"yaml(
parameterset: {name: p, parameter: {name: a, _: "1,2"}}
step: [{name: s, use: p}, {name: t, kind: run, depend: s, repeat: 2,
        do: "echo $a $jube_wp_iteration $jube_wp_id >> ../../order"}])yaml");
  CHECK(run.run().done == 6);
  CHECK(run.file("order") == "1 0 2\n2 0 4\n1 1 3\n2 1 5\n");
}

}  // namespace
}  // namespace tally
