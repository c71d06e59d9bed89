// The files of a run's results: tables, databases, charts. Prints nothing.
#pragma once

#include <set>
#include <string>

#include "engine/report/run_results.h"

namespace tally {

// The folder of a result's files: in the run's folder, or in a folder for each run below the
// result's result_dir.
std::string result_directory(const Run& run, const Result& result);
// The run whose results are in a folder, if it is another one that exists. Otherwise empty.
std::string other_owner(const Run& run, const std::string& folder);

class ResultFiles {
 public:
  // The arguments must outlive the object. `run`: null where nothing is written.
  ResultFiles(const Run* run, const RenderOptions& options, bool write)
      : run_(run), options_(options), write_(write) {}

  // Renders one result with the definitions that made `tables`, and writes its files and charts.
  MadeResult make(const Benchmark& definitions, const Result& result, const ResultTables& tables,
                  Diagnostics& diagnostics);

 private:
  std::string run_key(const Result& result) const;
  void write_tables(const std::string& folder, MadeResult* made);
  void write_charts(const ResultTables& tables, const std::string& folder, MadeResult* made,
                    Diagnostics& diagnostics) const;
  bool ready(const Benchmark& definitions, const std::string& folder, MadeResult* made);
  bool may_write(const std::string& folder, MadeResult* made);
  bool claim(const std::string& folder, MadeResult* made) const;
  bool make_folder(const std::string& folder, MadeResult* made);

  const Run* run_;
  const RenderOptions& options_;
  const bool write_;
  std::set<std::string> unwritable_;  // folders of which that was said
};

}  // namespace tally
