// A run is one object, from before its folder is there to its last table.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/expand/evaluator.h"
#include "engine/expand/expand.h"
#include "engine/journal/journal.h"
#include "engine/run/input.h"
#include "engine/run/run_directory.h"
#include "engine/run/settings.h"
#include "engine/workpackage/measured.h"
#include "engine/workpackage/workpackage.h"

namespace tally {

// The values that a new run is given beside its workflow.
struct NewRun {
  std::string outpath;                    // the folder of runs
  int id = -1;                            // the number that it shall have; negative: the next one
  std::string start;                      // 2026-11-21T01:18:53
  std::string comment;                    // one line
  bool comment_of_command = false;        // it takes the place of the file's in configuration.xml
  std::string version;                    // Tally's
  std::vector<std::string> include_path;  // --include-path
};

// Owns what a run needs for its whole life: its folder, its journal, its input as read and checked,
// its texts, its expander and its evaluator. Each is read, made or opened once.
class Run {
 public:
  enum class Access { read, write };

  // A run that is not there yet. `info`: the number and the folder that it will probably have.
  // Several runs may be of one input.
  Run(std::shared_ptr<Input> input, const Benchmark& benchmark, RunInfo info,
      std::shared_ptr<Evaluator> evaluator);

  // Makes the folder, JUBE's files there and the journal. If its number, its folder or its start
  // is another one than expected, the plan does not hold: it is expanded anew. If this fails with a
  // folder in directory(), nothing has begun, and what was made is removed.
  Status create(const NewRun& what);
  // Opens a run that is there, and reads the input that it has stored. An error status says why it
  // cannot be opened. Otherwise problems of the input are among its diagnostics; with errors it has
  // no workflow, and only directory(), journal() and input() may be used.
  static Status open(const RunDirectory& directory, Access access, const Settings& settings,
                     std::unique_ptr<Run>* out);

  // Takes the folder and the open journal of a run that is there, whose input the caller has read.
  void take(RunDirectory directory, std::unique_ptr<Journal> journal, Access access);

  // Reads the definitions that results are made with, if the run keeps others than its own
  // (analyse -u). Problems are among the diagnostics of definitions_input().
  Status read_definitions(const Settings& settings);
  // Takes those of `file`.
  Status update_definitions(const Settings& settings, const std::string& file,
                            const InputArgs& args);
  // Keeps those that were taken of `file` for later commands. An error says why they are not kept:
  // the run is in use, or belongs to another person.
  Status keep_definitions(const std::string& file, const InputArgs& args);
  // Records the comment, in configuration.xml too, where people's scripts read it, as in JUBE. The
  // run must be open for writing.
  Status set_comment(const std::string& comment);
  // Keeps the samples, if the run can be written.
  Status keep_samples(const std::vector<Sample>& samples);

  const RunDirectory& directory() const { return directory_; }
  Journal& journal() const { return *journal_; }
  const Input& input() const { return *input_; }
  // The benchmark that is or was executed.
  const Benchmark& benchmark() const { return *benchmark_; }
  // The definitions that results are made with, and the input that has them.
  const Input& definitions_input() const { return updated_ ? *updated_ : *input_; }
  const Benchmark& definitions() const { return *definitions_; }
  const Sources& sources() const { return definitions_input().sources; }

  const RunInfo& info() const { return info_; }
  // Evaluates the values of parameters.
  Evaluator& evaluator() const { return *evaluator_; }
  TextPool& texts() const { return *texts_; }
  Expander& expander();

  // The first workpackages, if a plan has made them with this run's expander. They are taken once.
  void start_with(std::vector<Workpackage> first) { first_ = std::move(first); }
  std::vector<Workpackage> take_first() { return std::exchange(first_, {}); }

 private:
  Run() = default;
  Status make_folder(const NewRun& what, const RunGroup& group);
  Status make_files(const NewRun& what);
  void expand_for(RunInfo info);
  void expand_as(RunInfo info, size_t most);
  Status become_writable();
  void take_definitions(std::unique_ptr<Input> updated);

  RunDirectory directory_;
  std::unique_ptr<Journal> journal_;
  std::shared_ptr<Input> input_;
  std::unique_ptr<Input> updated_;
  const Benchmark* benchmark_ = nullptr;
  const Benchmark* definitions_ = nullptr;
  RunInfo info_;
  std::shared_ptr<Evaluator> evaluator_;
  std::unique_ptr<TextPool> texts_;
  std::unique_ptr<Expander> expander_;
  std::vector<Workpackage> first_;
  bool writable_ = false;
};

// Makes the evaluator for the values of a run. If the workflow has steps of Tally's own kinds, its
// commands find the programs beside tally.
std::unique_ptr<Evaluator> make_run_evaluator(const Settings& settings, const Workflow& workflow);

}  // namespace tally
