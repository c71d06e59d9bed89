// Builds sets from elements and from other files, and resolves duplicates. Internal to check/.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "engine/base/text.h"
#include "engine/check/check.h"

namespace tally {

// A file from which sets are taken, with tags applied.
struct SetFile {
  std::string path;
  std::string directory;                   // base of relative paths in its filesets
  Document document;                       // after tags removed elements
  std::vector<std::string> include_paths;  // the file's own
};

// Whether an element of this name is one of the four kinds of set.
bool is_set(const std::string& name);
// The set `name` of kind `kind` in a file, at the top or in a benchmark. An empty `kind` means any
// kind that a step uses. Null if there is none.
const Element* find_set(const Element& parent, const std::string& kind, const std::string& name);
// The names of all sets in the same places, for messages.
std::vector<std::string> set_names(const Element& parent);

// Reads each set file once and keeps it.
class SetFiles {
 public:
  // `rules`: the main file's. The values of files that it takes sets from follow them, too.
  SetFiles(const CheckOptions& options, const Rules& rules, const std::set<std::string>& tags,
           Sources& sources, Diagnostics& diagnostics)
      : options_(options),
        rules_(rules),
        tags_(tags),
        sources_(sources),
        diagnostics_(diagnostics),
        read_(options.read) {
    read_.tags = std::vector<std::string>(tags.begin(), tags.end());
  }

  // Adds the benchmark file itself. It must be added first.
  const SetFile* add_main(const Document& document, const Element& filtered_root);
  // Opens the file that `home` asks for as `name` at `mark`. An empty name means `home` itself.
  // Returns null after an error.
  const SetFile* open(const std::string& name, const SetFile& home, const Mark& mark);
  const std::set<std::string>& used_tags() const { return used_tags_; }
  // The table of a scheduler that a platform has named. Null: it has none.
  std::shared_ptr<const SchedulerTable> table(const std::string& scheduler) const;
  // Files that are opened from now on keep what the tags would remove: everything in them is looked
  // at.
  void keep_untagged() {
    keeps_untagged_ = true;
    read_.tags.reset();
  }

 private:
  void add_platforms(SetFile* file);
  std::shared_ptr<const SchedulerTable> read_table(const std::string& path);
  const SchedulerTable* find_table(const Text& scheduler, const std::vector<std::string>& folders);
  std::vector<std::string> set_folders(const SetFile& home) const;
  Document document_of(const std::string& path, const Mark& mark);
  // For a file that is not found.
  std::string hint_for(const std::string& name, const std::vector<std::string>& directories) const;

  const CheckOptions& options_;
  const Rules& rules_;
  const std::set<std::string>& tags_;
  Sources& sources_;
  Diagnostics& diagnostics_;
  ReadOptions read_;                                       // includes what the main file adds
  std::map<std::string, std::unique_ptr<SetFile>> files_;  // null: could not be read
  // By name; null: it could not be read.
  std::map<std::string, std::shared_ptr<const SchedulerTable>> tables_;
  std::set<std::string> used_tags_;
  bool keeps_untagged_ = false;
};

// Builds the sets of a benchmark.
class SetBuilder {
 public:
  SetBuilder(SetFiles& files, const Rules& rules, const StepKinds& kinds, Diagnostics& diagnostics)
      : files_(files), rules_(rules), kinds_(kinds), diagnostics_(diagnostics) {}

  const Rules& rules() const { return rules_; }
  const SetFiles& files() const { return files_; }
  // Adds every set among `parent`'s children.
  void add_all(const Element& parent, const SetFile& home, Benchmark* benchmark);
  // Adds the sets that `use from="..."` names. Returns, for each name in `names`, the set's name in
  // the benchmark. `pattern_sets` is true for an analyser's use and false for a step's.
  std::vector<Text> add_from(const Text& from, const std::vector<Text>& names, bool pattern_sets,
                             const SetFile& home, Benchmark* benchmark);

 private:
  ParameterSet parameter_set(const Element& element, const SetFile& home);
  SubstituteSet substitute_set(const Element& element, const SetFile& home);
  FileSet file_set(const Element& element, const SetFile& home);
  PatternSet pattern_set(const Element& element, const SetFile& home);
  // The set that the element's init_with names, made by `build`. An empty set if there is none;
  // that is reported when it is an error.
  template <typename Set>
  Set initial_set(const Element& element, const SetFile& home,
                  Set (SetBuilder::*build)(const Element&, const SetFile&)) {
    const SetFile* file = nullptr;
    open_sets_.push_back(set_key(element.name, strip(element.get("name")), home));
    const Element* base = initial(element, home, &file);
    Set set;
    if (base != nullptr) {
      auto& known = std::get<std::map<const Element*, Set>>(initial_sets_);
      auto found = known.find(base);
      if (found == known.end()) found = known.emplace(base, (this->*build)(*base, *file)).first;
      set = found->second;
      depths_[&element] = depths_[base] + 1;
    }
    open_sets_.pop_back();
    return set;
  }
  const Element* initial(const Element& element, const SetFile& home, const SetFile** file);
  static std::string set_key(const std::string& kind, std::string_view name, const SetFile& file);
  // A file that a `from` names.
  struct Foreign {
    const SetFile& file;
    const Text& from;
    bool pattern_sets = false;
  };
  // Adds one set of it, under a separate name in the benchmark.
  void add_foreign(const std::string& name, const Foreign& foreign,
                   std::map<std::string, const Element*>* found, Benchmark* benchmark);
  bool add_as(const Element& element, const SetFile& home, const std::string& name,
              Benchmark* benchmark);
  Parameter parameter(const Element& element);
  // The parameters of a set so far. Parameters before `inherited` come from init_with.
  struct Parameters {
    size_t inherited = 0;
    std::vector<const Element*> origins;            // parallel to the set's parameters
    std::unordered_map<std::string, size_t> index;  // by name, because a set may have many
  };
  void add_parameter(Parameter parameter, const Element& element, const Element& set,
                     Parameters* before, ParameterSet* result);

  // Makes one parameter from the `count` elements that came from a list of values under `_`.
  Element whole_list(const Element* first, size_t count);

  SetFiles& files_;
  const Rules& rules_;
  const StepKinds& kinds_;
  Diagnostics& diagnostics_;
  // The sets that an init_with names, each made once: a chain of them would be made again for each
  // of its sets.
  std::tuple<std::map<const Element*, ParameterSet>, std::map<const Element*, SubstituteSet>,
             std::map<const Element*, FileSet>, std::map<const Element*, PatternSet>>
      initial_sets_;
  std::map<const Element*, size_t> depths_;  // the number of sets that an init_with leads through
  std::vector<std::string> open_sets_;       // keys of the sets being made, along the init_with
  std::set<std::string> circular_;           // keys of sets whose circle has been reported
};

}  // namespace tally
