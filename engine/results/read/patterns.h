// The patterns of a workflow, and their texts as they are before a workpackage is known.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/workflow/pattern_uses.h"
#include "engine/workflow/table_names.h"
#include "engine/workflow/workflow.h"

namespace tally {

// The definition decides which values a pattern finds in a step's outputs: its text, the names of
// the files, and the texts of other patterns where it refers to names. A kept sample serves this
// definition alone.
std::string definition_of(const Benchmark& benchmark, const Analyser& analyser,
                          const Analyse& analyse, const std::string& pattern);

// The same for the values of one row of `rows`, counted from 0.
std::string definition_of_row(const std::string& definition, const Analyser& analyser, int row);

// Why a pattern of several groups cannot begin rows: a match of it has several values.
std::string several_groups(const std::string& pattern, int groups);

// A pattern that matched nothing in the files of some successful workpackages.
struct Unmatched {
  Mark mark;
  std::string text;
  bool is_error = false;  // nowhere in the run, which has not measured it at all
};

// Reports patterns that Python's `re` cannot compile. Patterns that contain $parameters are left to
// analyse().
void check_patterns(const Benchmark& benchmark, Diagnostics& diagnostics);

// The patterns of all steps of the analyser, or of one of its `analyse` (not null). The first of a
// name counts.
std::vector<const Pattern*> patterns_of_analyser(const Benchmark& benchmark,
                                                 const Analyser& analyser,
                                                 const Analyse* of = nullptr);
// The names that a computed pattern (mode text, python, perl, shell) is computed from, through
// others of `patterns`: patterns that are read from files, and parameters.
std::set<std::string> names_behind(const std::vector<const Pattern*>& patterns,
                                   const Pattern& derived);
// A pattern with `measured_over`, and where its value is from.
struct Rate : RateTimes {
  std::set<std::string> read;  // the patterns whose matches give it its value
};
std::vector<Rate> read_rates(const Benchmark& benchmark, const Analyser& analyser);

// The names that one output uses: its columns, and those of its expressions. Private to results/.

// Adds every word of `text` that could be a name.
void add_words(const std::string& text, std::set<std::string>& out);
// The names whose values it shows, computes with or compares.
std::set<std::string> names_shown(const std::vector<Column>& columns,
                                  const std::vector<Reference>& references);
// Every word that could be a name, also of what chooses the rows and their order. The set is rather
// too large than too small.
std::set<std::string> names_in(const Table& table);
std::set<std::string> names_in(const Database& database);
std::set<std::string> names_in(const Syslog& syslog);

// Whether a table shows values of the pattern, or what is computed from them: by an expression, or
// by one of the `computed` patterns that has no default.
bool is_shown(const Benchmark& benchmark, const std::vector<const Pattern*>& computed,
              const std::string& name);
// Whether all columns of a pattern define what to show without a value. If so, the pattern may lack
// values. Columns that compute with it are asked where none shows it.
bool may_lack_values(const Benchmark& benchmark, const std::string& name);

// A name such as `rate_median`, and what it means.
struct SampleNameUse {
  std::string name;
  SampleName parts;
};
std::vector<SampleNameUse> sample_names(const Benchmark& benchmark,
                                        const std::set<std::string>& names);

// Whether the column needs the values of the repeats.
bool shows_repeats(const Column& column);

}  // namespace tally
