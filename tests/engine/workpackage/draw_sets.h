// The parameter sets of a drawn workflow.
#pragma once

#include <string>
#include <vector>

#include "tests/engine/workpackage/draw.h"

namespace tally::testing {

using Names = std::vector<std::string>;

// Names that every workpackage knows.
extern const Names run_names, step_names, own_names;

// As a double-quoted scalar of YAML.
std::string quoted(const std::string& text);
std::string reference(const std::string& name);  // ${name}
std::string joined(const Names& names, const std::string& separator);
void add(Names& names, const Names& more);

struct DrawnSet {
  std::string name;
  Names parameters, numbers;  // numbers: whole ones
  Names simple;               // known when the point is made: no late name in them
};

class DrawSets {
 public:
  // `jube`: keys of JUBE's language alone.
  DrawSets(Random& random, bool jube) : random_(random), jube_(jube) {}

  // "parameterset:", without children when there is none.
  Node draw();
  const std::vector<DrawnSet>& sets() const { return sets_; }
  // Whether there are sets v0 and v1, of which the parameter `which` of the set `choice` takes one.
  bool chosen() const { return chosen_; }
  // ", tag: x" now and then.
  std::string tag();

 private:
  std::string attributes(bool number);
  std::string numbers(int count);
  std::string dependent(const DrawnSet& set, std::string* more, bool* simple);
  Node parameter(DrawnSet& set, const std::string& name);
  Node parameter_set(int index);
  void add_zipped(DrawnSet& set, int index, Node& node, Node& parameters);
  void add_chosen_sets(Node& sets);

  Random& random_;
  bool jube_;
  bool chosen_ = false;
  std::vector<DrawnSet> sets_;
};

}  // namespace tally::testing
