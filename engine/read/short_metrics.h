// A metric of the short form: a pattern and its column.
#pragma once

#include <string>

#include "engine/read/yaml_tree.h"

namespace tally {

struct Metric {
  YamlPtr column;
  std::string file;  // in which the pattern is searched
  YamlPtr pattern;   // null: the column alone, which is computed from others
};

// The metric `key` with a definition that has its name and its keys: those of a pattern, those of a
// column, and `file`. `repeated`: it is measured more than once, so that its median is shown.
Metric metric_of(const YamlNode& key, const YamlNode& definition, bool repeated);

}  // namespace tally
