// Matches one workpackage's files against the patterns that apply to them.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/expand/substitute.h"
#include "engine/python/python_regex.h"
#include "engine/results/analyse.h"
#include "engine/results/statistics.h"

namespace tally {

// Values by name, for substitution into patterns and file names. They are views into the
// WorkpackageView.
class Values {
 public:
  explicit Values(const WorkpackageView& workpackage);
  const std::string* find(std::string_view name) const;

 private:
  std::unordered_map<std::string_view, const std::string*> values_;
};

// The matches of one result line so far, by pattern name.
using Found = std::map<std::string, Statistics>;

// Holds the compiled patterns and the problems found. All workpackages of an analyser share it.
class Scanner {
 public:
  Scanner(const Benchmark& benchmark, const Analyser& analyser, Diagnostics& diagnostics);
  ~Scanner();

  // Reads the files of `analyse` in the workpackage and adds the values to each of `found`: to those
  // of its row, and to its own if statistics of repeats are wanted.
  void scan(const Analyse& analyse, const WorkpackageView& workpackage,
            const std::vector<Found*>& found);
  // Reports the problems, each once. Call it once, at the end.
  void report();
  // The patterns that matched nothing, in the order of the file. In JUBE mode only those that
  // matched nowhere, because JUBE's files often have patterns for output of only some workpackages.
  std::vector<Unmatched> unmatched() const;

 private:
  struct Problem {
    Mark mark;
    std::string text;
    long long times = 0;
    bool error = false;
  };
  // The matches of a pattern in successful workpackages.
  struct Search {
    const Pattern* pattern = nullptr;
    size_t workpackages = 0;
    std::vector<int> without;        // ids of workpackages in whose files it matched nothing
    std::vector<std::string> files;  // as the analyser names them
  };
  // The patterns that were searched for in one workpackage's files.
  struct Sought {
    bool matched = false;
    std::vector<std::string> files;
  };
  using SoughtHere = std::map<const Pattern*, Sought>;

  void scan_file(const std::string& path, const std::vector<const Pattern*>& patterns,
                 const Values& values, const std::vector<Found*>& found, SoughtHere& here,
                 const std::string& name);
  void no_file(const Analyse& analyse, const AnalyseFile& file, const std::string& name,
               const WorkpackageView& workpackage);
  void count(const WorkpackageView& workpackage, const SoughtHere& here);
  std::vector<const Pattern*> patterns_for(const AnalyseFile& file) const;
  Regex* compiled(const Pattern& pattern, const std::string& text);
  void problem(const Mark& mark, const std::string& key, std::string text, bool error = false);
  std::string pattern_text(const Pattern& pattern, const std::vector<const Pattern*>& patterns,
                           const Values& values) const;

  const Benchmark& benchmark_;
  const Analyser& analyser_;
  Diagnostics& diagnostics_;
  std::unordered_map<std::string, std::unique_ptr<Regex>> regexes_;
  std::map<std::string, Problem> problems_;
  std::vector<Search> searches_;
};

// The patterns of the sets named by `use`, in order.
std::vector<const Pattern*> patterns_of(const Benchmark& benchmark, const std::vector<Text>& use);

}  // namespace tally
