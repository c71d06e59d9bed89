// From a step and the parents' points to the step's own points: parameter spaces, dependent
// parameters, scripts, exclusion rules.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/expand/evaluator.h"
#include "engine/expand/point.h"
#include "engine/workflow/workflow.h"

namespace tally {

// Values that belong to the run, not to a set: jube_benchmark_*.
struct RunInfo {
  int id = 0;  // jube_benchmark_id
  std::string name, home, rundir, start;
};

// A point left out by a rule, for the plan.
struct Excluded {
  const Step* step;
  Point point;
  Text rule;
};

struct StepPoints {
  std::vector<Point> points;  // in JUBE's order
  std::vector<Excluded> excluded;
  // A value that could not be computed fails the points concerned, not the run: parallel to
  // `points`, empty text when fine.
  std::vector<std::string> errors;
  // Where that stands which the error is about: a parameter's value, a rule. Parallel to `errors`;
  // unknown when there is none.
  std::vector<Mark> places;
};

// The parameter that a key of Expander::definition_key() means; null when the workflow does not
// have it.
const Parameter* find_definition(const Benchmark& benchmark, const std::string& key,
                                 const ParameterSet** set = nullptr);

// Expands steps of one benchmark. Keeps caches, so one object a run.
class Expander {
 public:
  Expander(const Benchmark& benchmark, const RunInfo& run, Evaluator& evaluator, TextPool& pool,
           const std::set<std::string>& tags);
  ~Expander();

  // The step's points for one combination of parents' points (empty: a step without depend).
  // Parents whose common parameters disagree give no points. Errors that concern the step as a
  // whole (the same parameter with two values in two sets) go to `diagnostics`.
  StepPoints expand(const Step& step, const std::vector<const Point*>& parents,
                    Diagnostics& diagnostics);

  // jube_wp_* and other late values: re-substitutes parameters that wait for them, and those whose
  // update mode asks for it, for one workpackage (see execute/). Returns an error text, or "";
  // `place`, unless null, gets where the parameter that has the error is written.
  std::string finish(const Step& step, Point& point,
                     const std::vector<std::pair<std::string, std::string>>& builtins,
                     Mark* place = nullptr);
  // finish() for a dry run: shell and perl values that wait are not run, and a value that cannot be
  // computed is no error, since a run may yet make what it reads. Returns the names of the
  // parameters left open.
  std::vector<std::string> finish_for_plan(
      const Step& step, Point& point,
      const std::vector<std::pair<std::string, std::string>>& builtins);
  // The same again at a cycle (update_mode cycle, always).
  std::string update(const Step& step, Point& point, UpdateMode reason,
                     const std::vector<std::pair<std::string, std::string>>& builtins);

  const Parameter& definition(const Binding& binding) const;
  const RunInfo& run() const;
  const TextPool& pool() const;
  Evaluator& evaluator() const;
  // jube_benchmark_* and jube_step_*: what every workpackage of the step may name.
  std::vector<std::pair<std::string, std::string>> step_builtins(const Step& step) const;
  // False while a value waits for finish() (it names jube_wp_id, say); its text is then the one to
  // be substituted.
  bool is_final(const Binding& binding) const;
  // Whether the point has such values: finish() has something to do.
  bool is_final(const Point& point) const;

  // A binding's definition as a text that outlives the process, "set/parameter", with a mark when
  // the value is not final or a later step may resolve it again; and back. restore() returns false when the workflow has no such
  // parameter.
  std::string definition_key(const Binding& binding) const;
  bool restore(const std::string& key, const std::string& value, uint32_t index, Binding* binding);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tally
