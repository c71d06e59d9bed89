// Python expressions over the rows of a result: columns, filters, references. Private to results/.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "engine/expand/evaluator.h"
#include "engine/results/rows/records.h"

namespace tally {

// The meaning of `$name` in a row that has no value of that name, though others have one.
enum class WithoutValue {
  leaves_out,      // the row has no result
  text_in_quotes,  // in quotes the text `$name`; elsewhere, the row has no result
  text,            // the text `$name`, as in JUBE
};

struct Reading {
  WithoutValue without = WithoutValue::leaves_out;
  bool flags = false;  // an expression that is `true` or `false`, in any spelling, is Python's
};

struct Evaluated {
  bool present = false;  // the row had all values that the expression needs
  std::string lacks;     // a name in the expression of which the row has no value, if there is one
  Evaluation result;
  std::string type;  // Python's name of the result's type: "str", "bool", "float"
  // The result with its type: a text stays a text, also one that looks like a number.
  Value value() const;
};

// Evaluates `expression` for each row. The row's values are available under their names, bare or as
// $name. If a row lacks a value for a name in `known`, its result is absent, except as `reading`
// says.
std::vector<Evaluated> evaluate(const std::string& expression, const std::vector<Record>& rows,
                                const std::set<std::string>& known, Evaluator& evaluator,
                                const Reading& reading = {});

// The names for which any row has a value, and with `records` also those for which a row could have
// one.
std::set<std::string> known_names(const std::vector<Record>& rows, const Records* records);

}  // namespace tally
