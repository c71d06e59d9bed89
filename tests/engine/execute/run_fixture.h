// A benchmark built in code and run for real in a temporary folder.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/base/files.h"
#include "engine/execute/execute.h"
#include "engine/run/run_directory.h"
#include "engine/workflow/workflow.h"

namespace tally::testing {

Operation op(const std::string& command);
Parameter parameter(const std::string& name, const std::string& value, Mode mode = Mode::text);
ParameterSet set_of(const std::string& name, std::vector<Parameter> parameters);
Step step_of(const std::string& name, const std::vector<std::string>& commands,
             const std::vector<std::string>& use = {}, const std::vector<std::string>& depend = {});

// A folder that is removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }
  std::string write(const std::string& name, const std::string& text, int mode = 0644) const;

 private:
  std::string path_;
};

class RunFixture {
 public:
  RunFixture();

  void add(ParameterSet set) { benchmark.parameter_sets[set.name.value] = std::move(set); }
  void add(Step step) { benchmark.steps.push_back(std::move(step)); }

  // A new run, or the same run gone on with (a fresh journal, expander and pool, as a new process
  // has).
  Status start(RunSummary* summary);
  Status advance(RunSummary* summary);
  RunSummary run();
  RunSummary continue_run();

  // Of the run's folder.
  std::string file(const std::string& name) const;
  bool has(const std::string& name) const;
  // "000000_step/work/stdout" of every workpackage, one after the other.
  std::string all_stdout() const;
  std::vector<Journal::Stored> stored() const;

  TemporaryFolder folder;
  Benchmark benchmark;
  Settings settings;
  Parts parts;
  RunDirectory directory;
  std::function<void(int, bool)> commit_hook;

 private:
  Status carry_out(Run& run, RunSummary* summary);
};

}  // namespace tally::testing
