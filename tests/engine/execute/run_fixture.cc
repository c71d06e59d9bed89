#include "tests/engine/execute/run_fixture.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "engine/base/text.h"
#include "steps/kinds.h"

namespace tally::testing {

Operation op(const std::string& command) {
  Operation operation;
  operation.command = {command, {}};
  return operation;
}

Parameter parameter(const std::string& name, const std::string& value, Mode mode) {
  Parameter p;
  p.name = {name, {}};
  p.value = {value, {}};
  p.mode = mode;
  return p;
}

ParameterSet set_of(const std::string& name, std::vector<Parameter> parameters) {
  ParameterSet set;
  set.name = {name, {}};
  set.parameters = std::move(parameters);
  return set;
}

Step step_of(const std::string& name, const std::vector<std::string>& commands,
             const std::vector<std::string>& use, const std::vector<std::string>& depend) {
  Step step;
  step.kinds = &step_kinds();
  step.name = {name, {}};
  for (const std::string& command : commands) step.operations.push_back(op(command));
  for (const std::string& set : use) step.use.push_back({set, {}});
  for (const std::string& parent : depend) step.depend.push_back({parent, {}});
  return step;
}

TemporaryFolder::TemporaryFolder() {
  const char* place = getenv("TMPDIR");
  std::string name = std::string(place != nullptr ? place : "/tmp") + "/tally-test-XXXXXX";
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryFolder::write(const std::string& name, const std::string& text,
                                   int mode) const {
  const std::string path = path_ + "/" + name;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << text;
  chmod(path.c_str(), static_cast<mode_t>(mode));
  return path;
}

RunFixture::RunFixture() {
  benchmark.name = {"test", {}};
  benchmark.file_path = folder.path();
  settings.hide_animation = true;
}

namespace {

Run run_of(const Benchmark& benchmark, const RunInfo& info) {
  auto input = std::make_shared<Input>();
  input->sources.add("bench.yaml", "name: test\n");
  input->workflow.emplace();
  input->workflow->benchmarks.push_back(benchmark);
  return {input, input->workflow->benchmarks.front(), info, make_evaluator(info.home)};
}

}  // namespace

Status RunFixture::start(RunSummary* summary) {
  const std::string outpath = folder.path() + "/out";
  int id = 0;
  if (Status s = next_run_id(outpath, &id); !s) return s;
  NewRun what;
  what.outpath = outpath;
  what.start = "2026-11-21T01:18:53";
  Run run = run_of(benchmark, {id, benchmark.name.value, folder.path(),
                               outpath + "/" + padded_id(id), what.start});
  if (Status s = run.create(what); !s) return s;
  directory = run.directory();
  return carry_out(run, summary);
}

Status RunFixture::advance(RunSummary* summary) {
  std::unique_ptr<Journal> journal;
  if (Status s = Journal::open(directory.path, &journal); !s) return s;
  const RunRecord& record = journal->run();
  Run run =
      run_of(benchmark, {record.id, record.benchmark, record.home, directory.path, record.start});
  run.take(directory, std::move(journal), Run::Access::write);
  return carry_out(run, summary);
}

Status RunFixture::carry_out(Run& run, RunSummary* summary) {
  if (commit_hook) run.journal().on_commit(commit_hook);
  return execute(run, settings, parts, summary);
}

RunSummary RunFixture::run() {
  RunSummary summary;
  if (Status s = start(&summary); !s) throw std::runtime_error(s.message());
  return summary;
}

RunSummary RunFixture::continue_run() {
  RunSummary summary;
  if (Status s = advance(&summary); !s) throw std::runtime_error(s.message());
  return summary;
}

std::string RunFixture::file(const std::string& name) const {
  std::string text;
  if (Status s = read_file(directory.path + "/" + name, &text); !s) return "<" + s.message() + ">";
  return text;
}

bool RunFixture::has(const std::string& name) const {
  return access((directory.path + "/" + name).c_str(), F_OK) == 0;
}

std::string RunFixture::all_stdout() const {
  std::string text;
  for (const Journal::Stored& workpackage : stored())
    text += file(workpackage.directory + "/work/stdout");
  return text;
}

std::vector<Journal::Stored> RunFixture::stored() const {
  std::unique_ptr<Journal> journal;
  if (Status s = Journal::open_read_only(directory.path, &journal); !s) {
    throw std::runtime_error(s.message());
  }
  std::vector<Journal::Stored> all;
  if (!journal->workpackages(&all)) std::abort();
  return all;
}

}  // namespace tally::testing
