// What analyse/ found: one record a result line, the input of report/.
#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "engine/workflow/workflow.h"

namespace tally {

// A value with its Python type, since its printed form depends on it.
struct Value {
  std::variant<std::monostate, std::string, long long, double> data;  // monostate: Python's None
  bool none() const { return data.index() == 0; }
  std::string str() const;  // Python's str() of the typed value
};

// One line of a result: parameters of the workpackage and its parents, built-ins, patterns with
// statistics. Ordered by the workpackage's rank.
struct Record {
  std::map<std::string, Value> values;
  std::vector<std::string> notes;  // "out of memory", "no baseline row": shown below the table
};
struct Records {
  std::vector<Record> rows;
  std::map<std::string, std::string> units;        // by column name
  std::map<std::string, ValueType> types;
};

}  // namespace tally
