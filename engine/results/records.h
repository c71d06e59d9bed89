// What the files of a run hold: one record a result line, the input of tables.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/base/mark.h"
#include "engine/python/value.h"
#include "engine/workflow/workflow.h"
#include "engine/workpackage/workpackage.h"

namespace tally {

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
