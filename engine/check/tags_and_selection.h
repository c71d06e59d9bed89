// Applies tags and selects benchmarks. Internal to check/.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/check/check.h"

namespace tally {

// The tags from the command line and from the file's `selection`.
std::set<std::string> tags_in_force(const Document& document, const CheckOptions& options);

// Removes every element whose tag expression is false, at any depth. An expression that cannot be
// parsed removes nothing; the schema check reports it.
void remove_untagged(const std::set<std::string>& tags, Element* element);

// The names of elements that tags removed, by the kind of element ("step", "analyser", ...).
using RemovedNames = std::map<std::string, std::set<std::string>>;
// The elements that `whole` has and `left` lacks. `left` is the same tree after remove_untagged().
RemovedNames removed_names(const Element& whole, const Element& left);

// Collects the names used in tag expressions, in check_tags, and by parameters with mode: tag.
void collect_tag_names(const Element& element, std::set<std::string>* names);

// Checks check_tags, described tags, and tags that are used nowhere. An unused tag is a warning.
// With `strict` it is an error, unless the file takes names of tags from parameters.
struct TagRules {
  const std::set<std::string>& tags;  // tags_in_force()
  const std::set<std::string>& used;  // collect_tag_names() of the files
  bool strict = false;
};
void check_tag_rules(const Element& root, const TagRules& rules, const CheckOptions& options,
                     Diagnostics& diagnostics);

// The benchmarks to run, chosen by the command line's --only-bench and --not-bench, or else by the
// file's selection.
std::vector<const Element*> selected_benchmarks(const Element& root, const CheckOptions& options,
                                                Diagnostics& diagnostics);

}  // namespace tally
