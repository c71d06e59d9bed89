// Sets: from elements, from other files, with duplicates resolved. Internal to check/.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/check/check.h"

namespace tally {

// A file that sets are taken from, tags applied.
struct SetFile {
  std::string path;
  std::string directory;                   // relative paths of its filesets start here
  Document document;                       // after removal by tags
  std::vector<std::string> include_paths;  // its own
};

// Whether an element of this name is one of the four kinds of set.
bool is_set(const std::string& name);
// The set called `name` of one kind ("" is any kind a step uses) in a file, at its top or in a
// benchmark; null when there is none.
const Element* find_set(const Element& parent, const std::string& kind, const std::string& name);
// The names of all sets there, for messages.
std::vector<std::string> set_names(const Element& parent);

// Reads set files, each once, and keeps them.
class SetFiles {
 public:
  // `own_rules`: the main file is of our own language, and so are those it takes sets from.
  SetFiles(const CheckOptions& options, bool own_rules, const std::set<std::string>& tags,
           Sources& sources, Diagnostics& diagnostics)
      : options_(options),
        own_rules_(own_rules),
        tags_(tags),
        sources_(sources),
        diagnostics_(diagnostics),
        read_(options.read) {
    read_.tags = std::vector<std::string>(tags.begin(), tags.end());
  }

  // The benchmark file itself; to be the first.
  const SetFile* add_main(const Document& document, const Element& filtered_root);
  // The file `name` as asked for in `home` at `mark`; `home` itself for an empty name. Null after
  // an error.
  const SetFile* open(const std::string& name, const SetFile& home, const Mark& mark);
  const std::set<std::string>& used_tags() const { return used_tags_; }

 private:
  const CheckOptions& options_;
  const bool own_rules_;
  const std::set<std::string>& tags_;
  Sources& sources_;
  Diagnostics& diagnostics_;
  ReadOptions read_;                                       // with what the main file adds
  std::map<std::string, std::unique_ptr<SetFile>> files_;  // null: could not be read
  std::set<std::string> used_tags_;
};

// Makes the sets of a benchmark.
class SetBuilder {
 public:
  // `own_rules`: not JUBE's for what a list under `_` means.
  SetBuilder(SetFiles& files, bool own_rules, Diagnostics& diagnostics)
      : files_(files), own_rules_(own_rules), diagnostics_(diagnostics) {}

  // Adds every set among `parent`'s children.
  void add_all(const Element& parent, const SetFile& home, Benchmark* benchmark);
  // Adds the sets that `use from="..."` names and returns, for each name in `names`, the name it
  // goes by in the benchmark. `pattern_sets` chooses between an analyser's use and a step's.
  std::vector<Text> add_from(const Text& from, const std::vector<Text>& names, bool pattern_sets,
                             const SetFile& home, Benchmark* benchmark);

 private:
  ParameterSet parameter_set(const Element& element, const SetFile& home, int depth);
  SubstituteSet substitute_set(const Element& element, const SetFile& home, int depth);
  FileSet file_set(const Element& element, const SetFile& home, int depth);
  PatternSet pattern_set(const Element& element, const SetFile& home, int depth);
  // The element an init_with names, with its file; null when there is none (reported when it
  // should).
  const Element* initial(const Element& element, const SetFile& home, int depth,
                         const SetFile** file);
  // Adds one set that a `from` names, under its own name in the benchmark.
  void add_foreign(const std::string& name, const SetFile& file, const Text& from,
                   bool pattern_sets, std::map<std::string, const Element*>* found,
                   Benchmark* benchmark);
  bool add_as(const Element& element, const SetFile& home, const std::string& name,
              Benchmark* benchmark);
  Parameter parameter(const Element& element);
  void add_parameter(Parameter parameter, const Element& element, const Element& set,
                     size_t inherited, std::vector<const Element*>* origins, ParameterSet* result);

  // One parameter of the `count` elements that a list of values under `_` was read as.
  Element whole_list(const Element* first, size_t count);

  SetFiles& files_;
  const bool own_rules_;
  Diagnostics& diagnostics_;
};

}  // namespace tally
