// Tags and the selection of benchmarks. Internal to check/.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/check/check.h"

namespace tally {

// The tags of the command line and those of the file's `selection`.
std::set<std::string> tags_in_force(const Document& document, const CheckOptions& options);

// Removes every element whose tag expression is false, at any depth. Expressions that cannot be
// read remove nothing (the schema check reports them).
void remove_untagged(const std::set<std::string>& tags, Element* element);

// The names of elements that tags removed, by the kind of element ("step", "analyser", ...).
using RemovedNames = std::map<std::string, std::set<std::string>>;
// What `whole` has and `left`, the same after remove_untagged(), has not.
RemovedNames removed_names(const Element& whole, const Element& left);

// Names mentioned in tag expressions, in check_tags, and by parameters with mode: tag.
void collect_tag_names(const Element& element, std::set<std::string>* names);

// check_tags, described tags, and tags that appear nowhere: a warning, with `strict` an error where
// the file describes its tags.
void check_tag_rules(const Element& root, const std::set<std::string>& tags,
                     const std::set<std::string>& used, const CheckOptions& options, bool strict,
                     Diagnostics& diagnostics);

// The benchmarks to run, by the command line's --only-bench and --not-bench, else the file's
// selection.
std::vector<const Element*> selected_benchmarks(const Element& root, const CheckOptions& options,
                                                Diagnostics& diagnostics);

}  // namespace tally
