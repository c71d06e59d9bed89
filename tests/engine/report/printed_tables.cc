#include "tests/engine/report/printed_tables.h"

#include <stdlib.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <set>

#include "engine/plan/plan.h"
#include "engine/report/report.h"
#include "engine/results/read/patterns.h"
#include "engine/results/read/views.h"
#include "engine/results/rows/analyse.h"
#include "engine/results/table/early_checks.h"
#include "engine/results/table/result_table.h"
#include "engine/workpackage/generator.h"
#include "engine/workpackage/values.h"
#include "steps/kinds.h"
#include "tests/engine/check/checked.h"

namespace tally::testing {
namespace {

namespace fs = std::filesystem;

CheckOptions with_kinds() {
  CheckOptions options;
  options.kinds = &step_kinds();
  return options;
}

// A workflow whose commands have run.
class Commands {
 public:
  explicit Commands(const std::string& workflow)
      : checked_("b.yaml", {{"b.yaml", workflow}}, with_kinds()), evaluator_(make_evaluator(".")) {
    std::string folder = "/tmp/tally-tables-XXXXXX";
    REQUIRE(mkdtemp(folder.data()) != nullptr);
    root_ = folder;
    if (!checked_.workflow || !is_fine()) return;
    const RunInfo info = run_info(benchmark(), 0, ".", "");
    Expander expander(benchmark(), info, *evaluator_, pool_, {});
    Plan plan = make_plan(benchmark(), expander, checked_.diagnostics);
    if (checked_.diagnostics.has_errors()) return;
    // A value that cannot be computed is an error of the plan.
    for (const Workpackage& one : plan.workpackages)
      if (one.outcome.state == State::failed)
        checked_.diagnostics.error(one.outcome.place, message(one.outcome));
    if (checked_.diagnostics.has_errors()) return;
    for (Workpackage& one : plan.workpackages) {
      REQUIRE(finish_planned(benchmark(), expander, &one));
      run(expander, one);
    }
    ran_ = true;
  }
  ~Commands() {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }
  Commands(const Commands&) = delete;
  Commands& operator=(const Commands&) = delete;

  bool ran() const { return ran_; }
  const Benchmark& benchmark() const { return checked_.benchmark(); }
  const std::vector<WorkpackageView>& views() const { return views_; }
  bool any_failed() const { return !failed_.empty(); }
  Checked& checked() { return checked_; }
  Evaluator& evaluator() { return *evaluator_; }
  std::string output(int id) const { return read_all(root_ / std::to_string(id) / "stdout"); }

 private:
  // The checks before a run, with its evaluator.
  bool is_fine() {
    Diagnostics& diagnostics = checked_.diagnostics;
    check_patterns(benchmark(), diagnostics);
    check_reference_conditions(benchmark(), diagnostics);
    Diagnostics expressions;
    if (benchmark().rules.harmless_mistakes_are_errors) expressions.make_warnings_errors();
    check_expressions(benchmark(), false, *evaluator_, expressions);
    diagnostics.append(expressions);
    return !diagnostics.has_errors();
  }

  void run(const Expander& expander, const Workpackage& one) {
    for (const int parent : one.parents)
      if (failed_.count(parent) != 0) failed_.insert(one.id);  // it never starts
    if (failed_.count(one.id) != 0) return;
    const fs::path folder = root_ / std::to_string(one.id);
    fs::create_directories(folder);
    const Step& step = benchmark().steps[static_cast<size_t>(one.step)];
    const WorkpackageValues values(benchmark(), expander, one);
    std::string script = "cd " + folder.string() + "\n";
    for (const Operation& operation : step.operations)
      script += "(" + values.apply(operation.command) + "\n) || exit $?\n";
    if (!step.kinds->local_launch(step, values.lookup()).command.empty())
      script += values.apply(step.launch) + "\n";
    std::ofstream(folder / "script") << script;
    const std::string in = folder.string();
    const std::string command = "sh " + in + "/script >" + in + "/stdout 2>" + in + "/stderr";
    const int status = std::system(command.c_str());
    WorkpackageView& view =
        views_.emplace_back(planned_view(benchmark(), expander, one, (folder / "stdout").string()));
    view.log.clear();  // the folder has what the commands left
    view.parents = one.parents;
    if (fs::exists(folder / "busy")) view.disturbance.cores = 1.5;
    if (fs::exists(folder / "throttled")) view.disturbance.throttling = "GPU 0: thermal slowdown";
    if (status == 0) return;
    failed_.insert(one.id);
    view.state = State::failed;
    if (benchmark().rules.rows_are_marked)
      view.notes.push_back("workpackage " + std::to_string(view.id) + " (" + view.step +
                           ") failed: exit code " + std::to_string(WEXITSTATUS(status)));
  }

  Checked checked_;
  std::unique_ptr<Evaluator> evaluator_;
  TextPool pool_;
  fs::path root_;
  std::vector<WorkpackageView> views_;
  std::set<int> failed_;  // ids
  bool ran_ = false;
};

void print(const RenderedResult& one, const Sources& sources, Ran* to) {
  to->out += one.text + (one.text.empty() ? "" : "\n");
  for (const std::string& note : grouped_notes(one.table.notes))
    to->err += "note: " + one.name + ": " + note + "\n";
  for (const MissedReference& missed : one.table.missed)
    to->err += position_text(sources, missed) + ": reference missed: " + one.name + ": " +
               missed.text + "\n";
  if (!one.table.missed.empty()) to->code = 5;
}

}  // namespace

Ran printed_tables(const std::string& workflow) {
  Commands commands(workflow);
  Checked& checked = commands.checked();
  Ran ran;
  ran.code = commands.ran() ? (commands.any_failed() ? 1 : 0) : 2;
  if (commands.ran()) {
    const ResultContext context{commands.benchmark(), commands.evaluator(), checked.diagnostics,
                                true};
    RenderOptions options;
    options.write = false;
    for (const Result& result : commands.benchmark().results) {
      const Records records = result_records(context, result, commands.views());
      report_unmatched(records, true, checked.diagnostics);
      const ResultTables tables(context, records);
      for (const RenderedResult& one :
           render(commands.benchmark(), result, tables, options, checked.diagnostics))
        print(one, checked.sources, &ran);
    }
    if (ran.code == 0 && checked.diagnostics.has_errors()) ran.code = 1;
  }
  ran.err += checked.messages();
  return ran;
}

std::vector<std::string> printed_outputs(const std::string& workflow) {
  const Commands commands(workflow);
  std::vector<std::string> outputs;
  for (const WorkpackageView& view : commands.views()) outputs.push_back(commands.output(view.id));
  return outputs;
}

}  // namespace tally::testing
