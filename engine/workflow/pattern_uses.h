// The patterns of analysers: the blocks that they are built of, the sets and the files that are
// used.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/workflow/workflow.h"

namespace tally {

// The text of jube_pat_int, _fp, _wrd, _nint, _nfp, _nwrd and _bl. Null for any other name. In
// Tally's own files _fp and _nfp also match Fortran's exponents.
const std::string* pattern_building_block(std::string_view name, bool fortran);
std::vector<std::string> pattern_block_names();

// The patterns of the sets named by `use`, in order.
std::vector<const Pattern*> patterns_of(const Benchmark& benchmark, const std::vector<Text>& use);
// The analyser's patterns, and those that the file alone has.
std::vector<const Pattern*> patterns_for(const Benchmark& benchmark, const Analyser& analyser,
                                         const AnalyseFile& file);

// A pattern that is searched for in a file of an analyser.
using SearchedIn = std::pair<const AnalyseFile*, const Pattern*>;

// A pattern with `measured_over`, and those of that name that have its time: of the files that it
// is read from, and where none of these has one, of all files of the analyser.
struct RateTimes {
  const Pattern* rate = nullptr;
  std::vector<SearchedIn> times;
};
std::vector<RateTimes> rate_times(const Benchmark& benchmark, const Analyser& analyser);

// The sets that the analyser uses, and those that its files alone use, in the order of the file.
std::vector<Text> used_pattern_sets(const Analyser& analyser);
// The patterns whose matches may belong to a row: those of the sets that define one of `rows`.
std::set<const Pattern*> patterns_of_rows(const Benchmark& benchmark, const Analyser& analyser);

// A workpackage's folder has a link to each one that it depends on. The steps that a file of
// `analyse` is read from through such a link, by the folders in its path.
std::set<std::string> steps_read(const Benchmark& benchmark, const Analyse& analyse,
                                 const AnalyseFile& file);

}  // namespace tally
