// `where` rules: Python expressions over a point's parameters. Private to expand/.
#pragma once

#include <string>
#include <vector>

#include "engine/expand/definitions.h"
#include "engine/expand/evaluator.h"

namespace tally {

struct RuleResult {
  bool holds = false;
  std::string error;  // the interpreter's message if the rule cannot be evaluated
};

// Evaluates `rule` for points of one layout (the same parameters in the same slots). Returns one
// result for each point. A rule may name parameters as $name, which is replaced as text, or bare,
// as Python variables. A bare variable has its parameter's type; see guarded_literal() for a string.
std::vector<RuleResult> evaluate_rule(
    const std::string& rule, const std::vector<const Point*>& points, Definitions& definitions,
    const std::vector<std::pair<std::string, std::string>>& builtins, Evaluator& evaluator);

}  // namespace tally
