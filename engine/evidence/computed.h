// The values of tables that interpreters compute: Python's of derived columns and patterns, those of
// a shell or Perl. An archive holds each expression, with its numbers in it, and what came of it. So
// tables follow from samples where there is no interpreter, and nothing that a stranger wrote is
// executed.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/expand/evaluator.h"
#include "engine/workflow/workflow.h"

namespace tally {

inline constexpr const char* kComputed = "computed.json";  // in a run's folder of an archive

class ComputedValues {
 public:
  // Computes by `real`, and remembers.
  std::unique_ptr<Evaluator> recording(Evaluator& real);
  // Computes nothing: what is not known is not to be computed, and is in missing().
  std::unique_ptr<Evaluator> remembered();

  std::string json() const;
  // An error: the text is none of json().
  Status read(const std::string& json);
  // The expressions that were asked for and are not known.
  const std::vector<std::string>& missing() const { return missing_; }
  // The first expression, with both values, for which `real` computes another value. Empty: none.
  std::string difference(Evaluator& real) const;

 private:
  class Recorder;
  class Reader;
  using Key = std::pair<Mode, std::string>;
  std::map<Key, Evaluation> values_;
  std::map<std::string, Evaluation> parsed_;  // Python that was looked at alone
  std::vector<std::string> missing_;
};

}  // namespace tally
