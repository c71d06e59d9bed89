// Renders the results of a run and writes their files.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "engine/cli/results.h"

namespace tally {

// The run whose results are in a folder, if it is another one that exists. Otherwise empty.
std::string other_owner(const Run& run, const std::string& folder);

class ResultWriter {
 public:
  // The arguments must outlive the object.
  ResultWriter(const Settings& settings, const ShowOptions& options)
      : settings_(settings), options_(options) {}

  // Renders one result with the definitions that made `tables`. Writes its files and charts if the
  // options ask for that. Prints why a file cannot be written.
  std::vector<RenderedResult> render_and_write(const Run& run, const Benchmark& definitions,
                                               const Result& result, const ResultTables& tables,
                                               Diagnostics& diagnostics);
  // The exit code that follows from the files.
  int code() const { return code_; }

 private:
  // A folder of results. What is below `root` is reached without following links.
  struct Folder {
    std::string root, path;
  };
  void write_charts(const Result& result, const ResultTables& tables,
                    const std::vector<RenderedResult>& rendered, const Folder& folder,
                    Diagnostics& diagnostics);
  bool may_write(const Run& run, const std::string& folder);
  bool claim(const Run& run, const std::string& folder);
  bool make_folder(const std::string& root, const std::string& folder);

  const Settings& settings_;
  const ShowOptions& options_;
  std::set<std::string> unwritable_;  // folders of which that was said
  int code_ = kFine;
};

}  // namespace tally
