// Prints what a small workflow's workpackages would execute, as one JSON line each:
//   {"name": "000003_step", "do": ["echo 1", ...]}
// For jube_peer_test.py, which runs the commands and compares with JUBE.
#include <fstream>
#include <iostream>
#include <iterator>

#include <nlohmann/json.hpp>

#include "engine/plan/plan.h"
#include "engine/workpackage/values.h"
#include "tests/engine/expand/small_workflow.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::ifstream file(argv[1]);
  const std::string yaml{std::istreambuf_iterator<char>(file), {}};
  const tally::Benchmark benchmark = tally::testing::small_workflow(yaml);
  const auto evaluator = tally::make_evaluator("");
  tally::TextPool pool;
  tally::RunInfo run{0, benchmark.name.value, "/home", "out/000000", ""};
  tally::Expander expander(benchmark, run, *evaluator, pool, {});
  tally::Diagnostics diagnostics;
  tally::Plan plan = tally::make_plan(benchmark, expander, diagnostics);
  for (const tally::Diagnostic& d : diagnostics.all()) std::cerr << d.message << '\n';
  for (tally::Workpackage& workpackage : plan.workpackages) {
    const tally::Step& step = benchmark.steps[static_cast<size_t>(workpackage.step)];
    nlohmann::json commands = nlohmann::json::array();
    const int cycles = std::stoi(step.cycles.value);
    for (workpackage.cycle = 0; workpackage.cycle < cycles; ++workpackage.cycle) {
      if (workpackage.cycle > 0) {
        const auto builtins = tally::WorkpackageValues(benchmark, expander, workpackage).builtins();
        expander.update(step, workpackage.point, builtins);
      }
      const tally::WorkpackageValues values(benchmark, expander, workpackage);
      for (const tally::Operation& operation : step.operations) {
        commands.push_back(values.apply(operation.command));
      }
    }
    std::cout << nlohmann::json{{"name", tally::folder_name_of(benchmark, workpackage)},
                                {"do", commands}}
                     .dump()
              << '\n';
  }
  return diagnostics.has_errors() ? 1 : 0;
}
