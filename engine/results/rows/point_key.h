// The key that tells whether rows and workpackages are the same point: the values of parameters,
// and of the patterns in an analyser's `rows`, which are parameters of its rows. It is made once, and
// stays with the row (Record::point).
//
// Each question names the parameters that count for it:
//   reduce        text_without() what varies between repeats; the parents (rows/groups.cc)
//   baselines     key() of what tells rows apart, but for `relative_to`; the iteration (table/columns.cc)
//   compare       key() of the free ones, but for --by; the analyser (judge/compare.cc)
//   stored JSON   text() of those that its table shows, because it has no others
//   history       those that a table shows, then differing(), the step (report/history.cc)
//   report, plot  those that a table shows
// Readers know a point by what a table shows of it: ShownPoint in table/column_info.h.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/base/compact.h"
#include "engine/results/read/rows_reader.h"
#include "engine/results/read/workpackage_view.h"
#include "engine/workflow/workflow.h"

namespace tally {

// The parameters of the input that are not derived from others, and all `rows`. Rows with equal values of these are
// the same point.
std::set<std::string> free_parameters(const Benchmark& benchmark);
// The parameters whose values may differ between the repeats of one point: they are evaluated
// again, or follow from jube_wp_*.
std::set<std::string> varying_parameters(const Benchmark& benchmark);
// All parameters, in the order in which the workflow's steps use them.
std::vector<std::string> parameter_order(const Benchmark& benchmark);

// The values of the parameters of a run's workpackages, texts of a list mostly once. A parameter that
// a key of the step hides has its own value.
class Points {
 public:
  // `exact`: see make_value().
  Points(const std::vector<WorkpackageView>& workpackages, bool exact);

  // -1: no workpackage has a parameter of that name.
  int find(std::string_view name) const;
  const std::string& name(int parameter) const { return at(parameter).name; }
  // Whether the run's workpackages have several values of it.
  bool differs(int parameter) const { return at(parameter).written.size() > 1; }
  // The workpackage's parameters in the order of its step. None: the workpackage is unknown.
  const std::vector<int>& of(int workpackage) const;
  // The value as it was written. Null: the workpackage has no such parameter.
  const std::string* written(int workpackage, int parameter) const;
  // The value as a table shows it: a number in Python's form.
  const std::string* shown(int workpackage, int parameter) const;
  // The place of the value in the order of the workpackages that have one first. -1: it has none.
  int place(int workpackage, int parameter) const;

 private:
  struct Parameter {
    std::string name;
    std::vector<std::string> written;
    std::unordered_map<size_t, std::string> shown;  // where it is another text
    uint32_t last = 0;                              // of the workpackage before
  };
  // The parameters of workpackages, mostly those of one step.
  struct Order {
    std::vector<int> parameters;
    std::vector<int> positions;  // by parameter; -1: none
  };
  struct Key {
    uint32_t order = 0;  // from 1; 0: unknown
    uint32_t begin = 0;  // in values_
  };

  const Parameter& at(int parameter) const { return parameters_[static_cast<size_t>(parameter)]; }
  void add(const WorkpackageView& workpackage, bool exact);
  int number_of(const std::string& name);
  size_t order_of(const std::vector<int>& parameters);
  static uint32_t value_of(Parameter& parameter, const std::string& text,
                           const WorkpackageView& view, bool exact);
  Key key_of(int workpackage) const;
  // The number of its value. Null: it has none.
  const uint32_t* value(int workpackage, int parameter) const;

  std::vector<Parameter> parameters_;
  std::unordered_map<std::string, int> numbers_;
  std::vector<Order> orders_;
  std::vector<Key> keys_;  // by id
  std::vector<uint32_t> values_;
  size_t last_order_ = 0;  // of the workpackage before
  std::vector<int> list_;  // its parameters
};

// The point of a workpackage, and of the rows that are made from it.
class PointKey {
 public:
  PointKey() = default;  // without parameters
  // `points`: null where rows come from no run. `match`: of a row that comes from a match, what tells
  // it from others of its workpackage.
  PointKey(std::shared_ptr<const Points> points, int workpackage, RowKey match = {})
      : points_(std::move(points)), workpackage_(workpackage) {
    match_.set(std::move(match));
  }

  // The value as a table shows it. Null: there is no such parameter.
  const std::string* value(std::string_view name) const;
  // The place of that value in the order of the run's workpackages, whatever the order of rows. -1:
  // there is none.
  int place(std::string_view name) const;
  // "name=value" of those parameters that it has, each ended by a NUL. Equal for the same point.
  std::string text(const std::set<std::string>& names) const;
  // The same with the number of the match among those with equal values.
  std::string key(const std::set<std::string>& names) const;
  // The text of all parameters but these and JUBE's own, by the values as they were written.
  std::string text_without(const std::set<std::string>& names) const;
  // These parameters, as far as they have several values in the run, in the order of the step, with
  // the values as they were written. Then the values of the match. The texts are the key's.
  std::vector<std::pair<std::string_view, std::string_view>> differing(
      const std::set<std::string>& names) const;

 private:
  std::shared_ptr<const Points> points_;  // null: of no run
  Rare<RowKey> match_;
  int workpackage_ = -1;
};

// The key of a workpackage's point: equal for its repeats. `varying`: varying_parameters().
std::string key_of_repeats(const std::shared_ptr<const Points>& points,
                           const WorkpackageView& workpackage,
                           const std::set<std::string>& varying);

}  // namespace tally
