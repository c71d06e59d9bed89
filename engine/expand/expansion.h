// Expands one step for one combination of parents. Private to expand/.
//
// All points of the step are processed together, level by level, so that scripts go to their
// interpreter in batches:
//   split value lists -> { substitute and evaluate what is ready } -> split the results -> ...
//   -> sets whose names depend on parameters -> texts with undefined names -> rules
// expansion_lists.cc splits value lists, expansion_resolve.cc computes what is ready, level by
// level.
#pragma once

#include <deque>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/base/compact.h"
#include "engine/base/diagnostics.h"
#include "engine/expand/definitions.h"
#include "engine/expand/evaluator.h"
#include "engine/expand/expand.h"
#include "engine/expand/point.h"

namespace tally {

using Builtins = std::vector<std::pair<std::string, std::string>>;

// The inputs of an expansion. All of them outlive it.
struct ExpansionContext {
  const Benchmark& benchmark;
  Evaluator& evaluator;
  Definitions& definitions;
  const std::set<std::string>& tags;
  const Builtins& builtins;  // jube_benchmark_*, jube_step_*
  // Problems that were already reported. A step is expanded once per combination of parents, but
  // each problem is reported only once.
  std::set<std::pair<const Step*, const Text*>>& reported;
  // Receives what is not computed: "parameter 'x'".
  std::set<std::string>& not_computed;
  size_t most_points;
};

// Whether a parent's parameter with this update mode starts anew in a child step, with all values
// of its list.
bool starts_anew(UpdateMode mode, bool set_is_used);
// Whether it is computed again when a cycle begins, also the first one of a child step. Until then
// it has the value of the step before, which the child's other values read, as in JUBE.
bool updates_in_cycle(UpdateMode mode);

// The message for the user when a script or a tag lookup failed.
// `explained`: a long expression is shortened, and a KeyError is named.
std::string evaluation_error(const Parameter& parameter, const std::string& expression,
                             const Evaluation& evaluation, bool explained);

// The error of a text that becomes too long.
std::string too_long(const Parameter& parameter);

// Which parameters a point has, and in which slots. All points that use the same sets share one.
struct Layout {
  std::vector<TextId> names;  // by slot
  std::unordered_map<std::string_view, uint32_t> slots;
  uint32_t own_begin = 0;   // slots before this one hold the parents' parameters
  std::vector<int> zip_of;  // slot -> index into zips, or -1
  std::vector<std::vector<uint32_t>> zips;
  std::vector<const ParameterSet*> sets;  // in use
  std::vector<const Text*> rules;         // the `where` rules of these sets
  std::vector<const Text*> uses;          // entries of `use` whose set names are not known yet

  // The slot of a name in a text, as find_binding() finds it. Null: there is none.
  const uint32_t* find(std::string_view name) const {
    auto found = slots.find(name);
    if (found == slots.end()) {
      const std::string_view other = without_platform_prefix(name);
      if (!other.empty()) found = slots.find(other);
    }
    return found == slots.end() ? nullptr : &found->second;
  }
};

class Expansion {
 public:
  Expansion(const ExpansionContext& context, const Step& step, Diagnostics& diagnostics)
      : context_(context), step_(step), diagnostics_(diagnostics) {}

  StepPoints run(const std::vector<const Point*>& parents);

 private:
  struct Work {
    const Layout* layout = nullptr;
    Point point;
    std::vector<uint32_t> open;  // slots that are not closed, in order
    RareText error;
    Mark place;  // where the cause of the error is written
  };
  struct Task {  // a script to run
    size_t work;
    uint32_t slot;
    std::string expression;
  };
  struct Axis {  // a list to be split, alone or zipped with others of its group
    uint32_t slot;
    uint32_t group;
    const std::vector<TextId>* pieces;
    Progress from;
  };
  enum class Force { none, unknown_names, everything };

  bool inherit(const std::vector<const Point*>& parents, Layout& layout, Point& point);
  bool starts_anew(const Binding& binding) const;
  bool is_of_other_platform(const Binding& binding) const;
  bool is_replaced(const Binding& present, const Binding& own) const;
  bool same_text(const Definition& a, const Definition& b) const;
  bool add_set(const ParameterSet& set, const Text& use, Layout& layout, Point& point);
  bool add_use(const Text& use, const std::string& names, Layout& layout, Point& point);
  void add_zips(const ParameterSet& set, Layout& layout);
  void add_slot(const Binding& binding, Layout& layout, Point& point);
  TextId name_in(TextId name, const Parameter& parameter, Layout& layout, Point& point) const;
  void open_slots(Work& work) const;
  void collect_own_sets();

  void split(bool own_first);
  void split_one(Work& work, uint32_t from, std::vector<Work>& out);
  bool axes(const Work& work, uint32_t from, std::vector<std::vector<uint32_t>>& out, Work& failed);
  void cross(const Work& work, const std::vector<Axis>& members, const std::vector<size_t>& lengths,
             std::vector<Work>& out) const;
  bool resolve_slots(Force force);
  std::vector<uint32_t> in_order(const Work& work) const;
  bool resolve_text(Work& work, Force force, std::vector<Task>& scripts, size_t index);
  bool is_late(const Work& work, uint32_t slot) const;
  bool is_blocked(const Work& work, uint32_t slot, Force force) const;
  std::string substituted(const Work& work, uint32_t slot, Force force, bool* blocked,
                          bool* literal) const;
  void run_scripts(std::vector<Task>& scripts);
  void note_not_computed(const Binding& binding) const;
  void set_value(Work& work, uint32_t slot, std::string_view value, bool literal);
  bool first_report(const Text& place) const {
    return context_.reported.emplace(&step_, &place).second;
  }
  bool has_lists() const;
  bool resolve_uses();
  void take_layout(Work& work, const Layout& layout) const;
  bool waits(const Work& work, const Text& use, std::string* names) const;
  void check_types();
  void apply_rules(StepPoints& result);
  void restart_cycles(Point& point) const;
  StepPoints collect();

  const ExpansionContext& context_;
  const Step& step_;
  Diagnostics& diagnostics_;
  std::deque<Layout> layouts_;
  bool has_parents_ = false;
  std::vector<Work> works_;
  std::set<const ParameterSet*> own_sets_;  // sets from `use` entries with plain names
  bool has_platform_ = false;               // one of them is a platform's
};

}  // namespace tally
