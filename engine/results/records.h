// The values from the files of a run: one record for each result line. Tables are made from
// records.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/base/mark.h"
#include "engine/python/value.h"
#include "engine/workflow/workflow.h"
#include "engine/workpackage/workpackage.h"

namespace tally {

// One line of a result: parameters of the workpackage and its parents, built-ins, and patterns with
// statistics. Ordered by the workpackage's id.
struct Record {
  std::map<std::string, Value> values;
  std::vector<std::string> notes;  // "out of memory", "no baseline row": shown below the table
  // The state of its workpackage. With several iterations, it is failed only if all of them failed.
  State state = State::done;
  bool reused = false;
  int id = 0;                          // the workpackage's
  std::vector<std::string> unmatched;  // patterns that matched nothing in its files
  // A failed or lost workpackage may have printed a number before it ended. References, baselines
  // and databases ignore such numbers.
  bool failed() const { return state == State::failed || state == State::lost; }
};
// A pattern that matched nothing in the files of some successful workpackages.
struct Unmatched {
  Mark mark;
  std::string text;
};
struct Records {
  std::vector<Record> rows;
  std::vector<std::string> notes;  // about workpackages that have no row
  std::vector<Unmatched> unmatched;
  std::map<std::string, std::string> units;  // by column name
  std::map<std::string, ValueType> types;
};

// Appends the rows, units and types of `more` to `records`. The first unit of a name stays.
void append(Records& records, Records more);

}  // namespace tally
