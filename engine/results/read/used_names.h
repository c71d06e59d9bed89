// The names that one output uses: its columns, and the words of its expressions. Private to
// results/.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "engine/workflow/sample_names.h"
#include "engine/workflow/workflow.h"

namespace tally {

// Adds every word of `text` that could be a name.
void add_words(const std::string& text, std::set<std::string>& out);
// Every word that could be a name. The set is rather too large than too small.
std::set<std::string> names_shown(const std::vector<Column>& columns,
                                  const std::vector<Reference>& references);
// Adds these, and the names of what chooses the rows and their order.
std::set<std::string> names_in(const Table& table);
std::set<std::string> names_in(const Database& database);
std::set<std::string> names_in(const Syslog& syslog);

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
