#include "tests/engine/execute/run_fixture.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

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

Status RunFixture::start(RunSummary* summary) {
  if (Status s = create_run_directory(folder.path() + "/out", &directory); !s) return s;
  if (Status s = write_run_files(directory.path, "<jube/>\n"); !s) return s;
  RunRecord record;
  record.id = directory.id;
  record.benchmark = benchmark.name.value;
  record.home = folder.path();
  record.start = "2026-11-21T01:18:53";
  Sources sources;
  sources.add("bench.yaml", "name: test\n");
  std::unique_ptr<Journal> journal;
  if (Status s = Journal::create(directory.path, record, sources, &journal); !s) return s;
  return carry_out(*journal, summary);
}

Status RunFixture::advance(RunSummary* summary) {
  std::unique_ptr<Journal> journal;
  if (Status s = Journal::open(directory.path, &journal); !s) return s;
  return carry_out(*journal, summary);
}

Status RunFixture::carry_out(Journal& journal, RunSummary* summary) {
  if (commit_hook) journal.on_commit(commit_hook);
  TextPool pool;
  auto evaluator = make_evaluator(folder.path());
  const RunRecord& record = journal.run();
  const RunInfo info{record.id, record.benchmark, record.home, directory.path, record.start};
  Expander expander(benchmark, info, *evaluator, pool, {});
  Parts with_evaluator = parts;
  if (with_evaluator.evaluator == nullptr) with_evaluator.evaluator = evaluator.get();
  return execute(benchmark, expander, pool, journal, directory.path, settings, with_evaluator,
                 summary);
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
