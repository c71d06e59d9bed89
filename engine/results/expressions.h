// Python expressions over the rows of a result: columns, filters, references. Private to results/.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/expand/evaluator.h"
#include "engine/results/records.h"

namespace tally {

using Values = std::map<std::string, Value>;

struct Evaluated {
  bool present = false;  // the row had every value that was asked for
  Evaluation result;
};

// `expression` for each row, with the row's values under their names, bare or as $name. A name of
// `known` that a row has no value for makes that row's result absent.
std::vector<Evaluated> evaluate(const std::string& expression, const std::vector<Record>& rows,
                                const std::set<std::string>& known, Evaluator& evaluator);

// All names that any row has a value for, or, with `records`, could have had.
std::set<std::string> known_names(const std::vector<Record>& rows, const Records* records);

// Whether `c` may stand in a name; any byte of a character beyond ASCII may.
bool is_name_char(char c);

}  // namespace tally
