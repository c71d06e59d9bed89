// Matches one workpackage's files against the patterns that apply to them.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/expand/substitute.h"
#include "engine/python/python_regex.h"
#include "engine/results/read/file_view.h"
#include "engine/results/read/patterns.h"
#include "engine/results/read/rows_reader.h"
#include "engine/results/read/workpackage_view.h"
#include "engine/workflow/pattern_uses.h"
#include "engine/workpackage/ended_file.h"

namespace tally {

// ViewValues by name, for substitution into patterns and file names. They are views into the
// WorkpackageView. The index is made on first use, because most patterns and names need none.
class ViewValues {
 public:
  explicit ViewValues(const WorkpackageView& workpackage) : workpackage_(workpackage) {}
  const std::string* find(std::string_view name) const;

 private:
  const WorkpackageView& workpackage_;
  mutable std::unordered_map<std::string_view, const std::string*> values_;
};

// Holds the compiled patterns and the problems found. The workpackages of an analyser share it, or
// consecutive ranges of them have one each: several threads may read at once.
class Scanner {
 public:
  Scanner(const Benchmark& benchmark, const Analyser& analyser);
  ~Scanner();
  Scanner(Scanner&&) noexcept;

  // Reads the files of `analyse` in the workpackage, but for `left_out`, and adds the values to
  // `found`.
  void scan(const Analyse& analyse, const WorkpackageView& workpackage, const MatchSinks& found,
            const std::vector<const AnalyseFile*>& left_out = {});
  // Workpackages of which another file, or one of another size or time, was opened than at their
  // end.
  const std::vector<int>& suspects() const { return suspects_; }
  // Adds what another scanner has found out about workpackages that come after this one's.
  void add(const Scanner& later);
  // Reports the problems, each once. Call it once, at the end.
  void report(Diagnostics& diagnostics) const;
  // The patterns that matched nothing, in the order of the file. In JUBE mode only those that
  // matched nowhere, because JUBE's files often have patterns for output of only some workpackages.
  std::vector<Unmatched> unmatched() const;
  // The patterns that have found different values in one file of a successful workpackage, in the
  // order of the file, and the most values that one has found there.
  std::vector<const Pattern*> several(long long* most) const;

 private:
  struct Problem {
    Mark mark;
    std::string text;
    long long times = 0;
    bool error = false;
    // It is an error where one of these has no value in the run: patterns whose matches could not
    // be converted, or whose file a workpackage does not have.
    std::vector<const Pattern*> patterns;
  };
  // The matches of a pattern in successful workpackages.
  struct Search {
    const Pattern* pattern = nullptr;
    size_t workpackages = 0;
    std::vector<int> without;        // ids of workpackages in whose files it matched nothing
    std::vector<std::string> files;  // as the analyser names them
    long long most = 0;              // values in one file, where they differ
    bool has_value = false;          // some match is of its type
  };
  // The matches of a pattern in one file.
  struct Matches {
    long long count = 0;
    bool has_value = false;  // some match is of the pattern's type
    bool differ = false;
  };
  // The patterns that were searched for in one workpackage's files.
  struct SearchedPattern {
    bool matched = false;
    bool has_value = false;
    std::vector<std::string_view> files;
    long long most = 0;  // values in one file, where they differ
  };
  using SearchedHere = FlatMap<const Pattern*, SearchedPattern>;
  // A name that an `analyse` has for files. It may be a glob.
  struct FileName {
    std::string text;
    bool glob = false;
  };
  // One entry of an `analyse`: what is the same for all workpackages.
  struct FileSearch {
    const AnalyseFile* file = nullptr;
    std::vector<const Pattern*> patterns;
    std::optional<std::vector<FileName>> names;  // unless they depend on the workpackage
  };

  struct PlainRegex {
    bool same_everywhere = true;  // else it depends on the workpackage, and is in regexes_
    std::unique_ptr<Regex> regex;
  };

  static std::vector<FileName> file_names(const std::string& list);
  // The thing that has a file's name: a file, also one that cannot be read; a folder or the like;
  // nothing.
  enum class Seen { file, no_file, nothing };
  // A workpackage's file, by its path and as the analyser names it.
  struct ScannedFile {
    const WorkpackageView& workpackage;
    const std::string& path;
    const std::string& name;
    const AnalyseFile* entry;  // of the `analyse`
  };
  Seen scan_file(const ScannedFile& file, const std::vector<const Pattern*>& patterns,
                 const ViewValues& values, const MatchSinks& found, SearchedHere& here);
  // Finds the part of the file that this workpackage wrote. Returns false, after reporting why, if
  // there is none.
  bool own_part(const ScannedFile& file, FilePart* part);
  void report_cut(const std::string& path, std::string_view text, std::string_view match,
                  const Pattern& pattern);
  // Returns the matches of the pattern in the file.
  Matches search(const ScannedFile& file, FileView& view, const Pattern& pattern, Regex& regex,
                 const MatchSinks& found);
  void add_stated(const MatchSinks& found) const;
  // The values that the journal kept of a workpackage for an analyse, all or those of a row of `rows`.
  struct KeptPart {
    const Analyse& analyse;
    const WorkpackageView& workpackage;
    int row = -1;  // -1: all
  };
  // The seconds that it kept of a time. An earlier version kept the values alone, not those of which
  // file: then they are of all.
  StatedSeconds kept_seconds(const KeptPart& part, const Pattern& time, const Statistics& values);
  const std::vector<FileSearch>& searches_of(const Analyse& analyse);
  Search& search_of(const Pattern* pattern);
  // Takes the values of a workpackage whose outputs are gone from the journal. False: it has none.
  bool take_kept(const Analyse& analyse, const WorkpackageView& workpackage,
                 const MatchSinks& found);
  void end_rows(const MatchSinks& found);
  void take_kept_rows(const Analyse& analyse, const WorkpackageView& workpackage,
                      const MatchSinks& found);
  static bool was_there(const FileSearch& search, const WorkpackageView& workpackage,
                        const SearchedHere& here);
  void no_file(const Analyse& analyse, const FileSearch& search, const std::string& name,
               const WorkpackageView& workpackage);
  bool has_no_value(const Pattern& pattern) const;
  void count(const WorkpackageView& workpackage, const SearchedHere& here);
  Regex* regex_of(const Pattern& pattern, const std::vector<const Pattern*>& patterns,
                  const ViewValues& values);
  Regex* compiled(const Pattern& pattern, const std::string& text);
  std::unique_ptr<Regex> compile(const Pattern& pattern, const std::string& text);
  void problem(const Mark& mark, const std::string& key, std::string text, bool error = false);
  std::string pattern_text(const Pattern& pattern, const std::vector<const Pattern*>& patterns,
                           const ViewValues& values) const;

  const Benchmark& benchmark_;
  const Analyser& analyser_;
  Diagnostics errors_;  // of patterns
  std::map<const Analyse*, std::vector<FileSearch>> files_;
  std::unordered_map<const Pattern*, PlainRegex> plain_;
  std::unordered_map<std::string, std::unique_ptr<Regex>> regexes_;  // those with parameters
  std::map<std::string, Problem> problems_;
  std::vector<Search> searches_;
  RowsReader rows_;
  std::set<SearchedIn> times_;  // that a `measured_over` names
  const std::vector<Rate> rates_;
  std::vector<const Pattern*> computed_;  // patterns of the analyser
  struct {
    StatedSeconds seconds;
    std::set<std::string> matched;   // patterns with a value, where there are rates
  } in_file_;                        // the one that is read
  FilesPrint opened_;                // of the workpackage that is being read, its own files
  long long opened_changed_ns_ = 0;  // when the last of them was changed
  std::vector<int> suspects_;
};

}  // namespace tally
