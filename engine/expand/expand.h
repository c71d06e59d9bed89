// Turns a step and its parents' points into the step's own points. This covers parameter spaces,
// dependent parameters, scripts and exclusion rules.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/expand/evaluator.h"
#include "engine/expand/point.h"
#include "engine/workflow/workflow.h"

namespace tally {

// Values that belong to the run and not to a set: jube_benchmark_*.
struct RunInfo {
  int id = 0;  // jube_benchmark_id
  std::string name, home, rundir, start;
  size_t most_points = tally::most_points;  // of a step; its workpackages, too
};

// A point that a rule excluded. The plan lists these.
struct Excluded {
  const Step* step;
  Point point;
  Text rule;
};

struct PointError {
  std::string text;
  Mark place;  // of the parameter's value or the rule that failed; unknown: of the whole step
};

struct StepPoints {
  std::vector<Point> points;  // in JUBE's order
  std::vector<Excluded> excluded;
  // The errors of points, by index. A value that cannot be computed fails the points concerned, not
  // the whole run. Few points have an error, so the others take no space here.
  std::map<size_t, PointError> errors;
  // Rules that are not computed (Evaluator::computes()) may exclude points.
  bool in_doubt = false;
};

// Finds the parameter for a key from Expander::definition_key(). Returns null when the workflow
// does not have it.
const Parameter* find_definition(const Benchmark& benchmark, const std::string& key,
                                 const ParameterSet** set = nullptr);

// The values of the built-in names of the phases run and step, the latter if there is a step.
std::vector<std::pair<std::string, std::string>> run_builtins(const RunInfo& run, const Step* step);

// Expands the steps of one benchmark. The object keeps caches, so use one object per run.
class Expander {
 public:
  Expander(const Benchmark& benchmark, const RunInfo& run, Evaluator& evaluator, TextPool& pool,
           const std::set<std::string>& tags);
  ~Expander();

  // The step's points for one combination of parents' points. `parents` is empty for a step without
  // `depend`. The result has no points if the parents disagree about a common parameter. Errors
  // that concern the whole step (the same parameter with two values in two sets) go to
  // `diagnostics`.
  StepPoints expand(const Step& step, const std::vector<const Point*>& parents,
                    Diagnostics& diagnostics);

  // Resolves the late values of one workpackage: parameters that need jube_wp_* or other late
  // names, and parameters whose update mode asks for it (see execute/). Returns an error text, or
  // "". If `place` is not null, it receives where the failed parameter is written. A value
  // that names one of `later`, itself or through other parameters, stays open for another call.
  using Names = std::vector<std::string_view>;
  std::string finish(const Step& step, Point& point,
                     const std::vector<std::pair<std::string, std::string>>& builtins,
                     Mark* place = nullptr, const Names& later = {});
  // Like finish(), for a dry run. Shell and perl values that are still open are not run. A value
  // that cannot be computed is not an error, because a run may create what the value reads. Returns
  // the names of the parameters left open.
  std::vector<std::string> finish_for_plan(
      const Step& step, Point& point,
      const std::vector<std::pair<std::string, std::string>>& builtins, const Names& later = {});
  // Like finish(), at a later cycle: resolves parameters with update_mode cycle or always again.
  std::string update(const Step& step, Point& point,
                     const std::vector<std::pair<std::string, std::string>>& builtins);

  const Parameter& definition(const Binding& binding) const;
  const RunInfo& run() const;
  const TextPool& pool() const;
  Evaluator& evaluator() const;
  // The items that the evaluator did not compute: "parameter 'x'". Others may add to them.
  std::set<std::string>& not_computed();
  // run_builtins() of the step, made once.
  std::vector<std::pair<std::string, std::string>> step_builtins(const Step& step) const;
  // False while the value needs finish(), because it names jube_wp_id, for example. The binding
  // then holds the text before substitution.
  bool is_final(const Binding& binding) const;
  // False while the point has such values, so that finish() is needed.
  bool is_final(const Point& point) const;

  // A binding's definition as a text that outlives the process: "set/parameter", plus a mark when
  // the value is not final or when a later step may resolve it again. restore() does the reverse.
  // It returns false when the workflow does not have the parameter.
  std::string definition_key(const Binding& binding) const;
  bool restore(const std::string& key, const std::string& value, uint32_t index, Binding* binding);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tally
