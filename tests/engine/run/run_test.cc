// A run as one object: what it makes, what it opens, and what a plan leaves it.
#include "engine/run/run.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/files.h"
#include "engine/base/text.h"
#include "engine/execute/execute.h"
#include "engine/plan/planned_run.h"
#include "engine/workpackage/values.h"
#include "steps/kinds.h"

using namespace tally;
namespace fs = std::filesystem;

namespace {

constexpr const char* kStart = "2026-11-28T01:00:00";

class Suite {
 public:
  Suite() {
    std::string path = "/tmp/tally-run-test-XXXXXX";
    REQUIRE(mkdtemp(path.data()) != nullptr);
    root_ = path;
    settings_.kinds = &step_kinds();
    settings_.hide_animation = true;
  }
  ~Suite() {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }
  Suite(const Suite&) = delete;
  Suite& operator=(const Suite&) = delete;

  std::string path(const std::string& name) const { return root_ + "/" + name; }
  const Settings& settings() const { return settings_; }

  // A run of the benchmark that will probably have this number.
  Run expected(int id) const {
    auto input = std::make_shared<Input>();
    const std::string text =
        "name: b\nparameterset: {name: p, parameter: [{name: i, type: int, _: \"1,2,3\"}, "
        "{name: z, mode: shell, _: \"echo $i >> " +
        path("evaluated") +
        "; echo z\"}]}\n"
        "step: {name: s, use: p, do: echo v=$i in $jube_benchmark_padid}\n"
        "patternset: {name: q, pattern: {name: v, type: int, _: \"v=$jube_pat_int\"}}\n"
        "analyser: {name: a, use: q, analyse: {step: s, file: stdout}}\n"
        "result: {use: a, table: {name: t, column: [i, v]}}\n";
    REQUIRE(read_input_text(settings_, path("b.yaml"), text, {}, input.get()));
    REQUIRE(input->workflow);
    const Benchmark& benchmark = input->workflow->benchmarks.front();
    return {input, benchmark, run_info(benchmark, id, path("runs/") + padded_id(id), kStart),
            make_run_evaluator(settings_, *input->workflow)};
  }

  NewRun described() const {
    NewRun what;
    what.outpath = path("runs");
    what.start = kStart;
    return what;
  }

  std::unique_ptr<Run> open(const RunDirectory& directory, Run::Access access) const {
    std::unique_ptr<Run> run;
    const Status opened = Run::open(directory, access, settings_, &run);
    CHECK_MESSAGE(opened, opened.message());
    return run;
  }

 private:
  std::string root_;
  Settings settings_;
};

// Plans the run, as `tally run` does, and lets it start with that.
Run with_plan(Run run) {
  Diagnostics diagnostics;
  PlannedRun planned{std::move(run), {}, {}};
  planned.plan = make_plan(planned.run.benchmark(), planned.run.expander(), diagnostics);
  CHECK(planned.plan.first == 3);
  start_with_plan(planned);
  return std::move(planned.run);
}

std::string outputs(const Run& run) {
  std::string all;
  for (const char* folder : {"000000_s", "000001_s", "000002_s"}) {
    std::string text;
    CHECK(read_file(run.directory().path + "/" + folder + "/work/stdout", &text));
    all += text;
  }
  return all;
}

}  // namespace

TEST_CASE("the plan's workpackages are the run's, unless the run has become another one") {
  const Suite suite;
  for (const int expected : {0, 0, 7}) {
    fs::remove(suite.path("evaluated"));
    Run run = with_plan(suite.expected(expected));
    NewRun what = suite.described();
    REQUIRE(run.create(what));
    const bool as_expected = run.directory().id == expected;
    CHECK(run.info().id == run.directory().id);
    RunSummary summary;
    REQUIRE(execute(run, suite.settings(), {}, &summary));
    CHECK(summary.done == 3);
    const std::string id = padded_id(run.directory().id);
    CHECK(outputs(run) == "v=1 in " + id + "\nv=2 in " + id + "\nv=3 in " + id + "\n");
    CHECK(run.take_first().empty());
    CHECK(as_expected == (expected == 0 && run.directory().id == 0));
    std::string evaluated;  // by the plan, and again if the plan does not hold
    REQUIRE(read_file(suite.path("evaluated"), &evaluated));
    CHECK(evaluated == (as_expected ? "1\n2\n3\n" : "1\n2\n3\n1\n2\n3\n"));
  }
}

TEST_CASE("a run that cannot be made leaves nothing, and is to be started again") {
  const Suite suite;
  Run run = suite.expected(3);
  NewRun what = suite.described();
  what.id = 3;
  fs::create_directories(suite.path("runs/000003"));
  const Status taken = run.create(what);
  CHECK(taken.message() ==
        "Benchmark directory \"" + suite.path("runs/000003") + "\" already exists");
  CHECK(run.directory().path.empty());
  CHECK(fs::is_empty(suite.path("runs/000003")));
}

TEST_CASE("a run is read beside the engine that holds it, and written when that has gone") {
  const Suite suite;
  RunDirectory directory;
  {
    Run run = suite.expected(0);
    REQUIRE(run.create(suite.described()));
    RunSummary summary;
    REQUIRE(execute(run, suite.settings(), {}, &summary));
    run.journal().publish();
    directory = run.directory();
    const std::unique_ptr<Run> reader = suite.open(directory, Run::Access::read);
    REQUIRE(reader);
    std::vector<Journal::Tally> states;
    CHECK(reader->journal().states(&states));
    CHECK(states.size() == 1);
    CHECK_FALSE(reader->keep_samples({{0, "a", "v", "d", "1", ""}}));
    bool has = true;
    CHECK(reader->journal().has_samples(&has));
    CHECK_FALSE(has);
    CHECK(reader->journal().has_end(&has));
    CHECK(has);
  }
  const std::unique_ptr<Run> reader = suite.open(directory, Run::Access::read);
  REQUIRE(reader);
  CHECK(reader->keep_samples({{0, "a", "v", "d", "1", ""}}));
  bool has = false;
  CHECK(reader->journal().has_samples(&has));
  CHECK(has);
  CHECK(run_holder(directory.path));
}

TEST_CASE("results have the definitions that the run keeps; what was executed stays") {
  const Suite suite;
  RunDirectory directory;
  {
    Run run = suite.expected(0);
    REQUIRE(run.create(suite.described()));
    directory = run.directory();
  }
  const std::string file = suite.path("later.yaml");
  REQUIRE(write_file(file,
                     "name: b\npatternset: {name: q, pattern: {name: w, _: x}}\n"
                     "analyser: {name: a, use: q, analyse: {step: s, file: stdout}}\n"
                     "result: {use: a, table: {name: t, column: [i, w]}}\n"));
  for (const bool given : {true, false}) {
    const std::unique_ptr<Run> run = suite.open(directory, Run::Access::read);
    REQUIRE(run);
    const Status read = given ? run->update_definitions(suite.settings(), file, {})
                              : run->read_definitions(suite.settings());
    REQUIRE(read);
    const Status kept = given ? run->keep_definitions(file, {}) : Status::ok();
    CHECK_MESSAGE(kept, kept.message());
    CHECK(run->definitions().pattern_sets.at("q").patterns.front().name.value == "w");
    CHECK(run->benchmark().pattern_sets.at("q").patterns.front().name.value == "v");
    CHECK(run->definitions().steps.size() == 1);
  }
}
