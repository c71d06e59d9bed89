// What the files of a run hold: one record a result line, the input of tables.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/base/mark.h"
#include "engine/base/number.h"
#include "engine/results/big_int.h"
#include "engine/workflow/workflow.h"
#include "engine/workpackage/workpackage.h"

namespace tally {

// A value with its Python type, since its printed form depends on it.
struct Value {
  // monostate: Python's None. BigInt only where long long is too small.
  std::variant<std::monostate, std::string, long long, double, BigInt> data;
  bool none() const { return data.index() == 0; }
  bool number() const { return data.index() >= 2; }
  // The number as a double; 0 for what is none.
  double as_double() const;
  std::string str() const;  // Python's str() of the typed value
  // Python's name of the type: NoneType, str, int, float.
  const char* type_name() const;
};

bool operator==(const Value& a, const Value& b);
// a < b as Python orders numbers and strings; a string is after every number, None never smaller.
bool less(const Value& a, const Value& b);

// Python's repr() of a float: "1.0", "1e+22", "nan", "-inf".
std::string python_repr(double value);
// `text` as `type`: int is int(float(text)), with Python's result. Nothing when it cannot be.
std::optional<Value> make_value(std::string_view text, ValueType type);
// An integer of any size, as long long where it fits.
Value integer_value(const BigInt& value);

// One line of a result: parameters of the workpackage and its parents, built-ins, patterns with
// statistics. Ordered by the workpackage's id.
struct Record {
  std::map<std::string, Value> values;
  std::vector<std::string> notes;  // "out of memory", "no baseline row": shown below the table
  // Of its workpackage; of several iterations, failed only where no iteration ended well.
  State state = State::done;
  bool reused = false;
  int id = 0;                          // the workpackage's
  std::vector<std::string> unmatched;  // patterns that its files were searched for in vain
  // A failed or lost workpackage may have printed a number before it ended: no reference, baseline
  // or database takes it.
  bool failed() const { return state == State::failed || state == State::lost; }
};
// A pattern that matched nothing in the files of some workpackages that ended well.
struct Unmatched {
  Mark mark;
  std::string text;
};
struct Records {
  std::vector<Record> rows;
  std::vector<std::string> notes;  // of workpackages that have no row
  std::vector<Unmatched> unmatched;
  std::map<std::string, std::string> units;  // by column name
  std::map<std::string, ValueType> types;
};

// Adds the rows, units and types of `more` behind those of `records`; the first unit of a name
// stays.
void append(Records& records, Records more);

}  // namespace tally
