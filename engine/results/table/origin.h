// Where the values of a row come from: work that this run did, or work that it reused.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/results/rows/records.h"
#include "engine/workflow/workflow.h"

namespace tally {

inline constexpr const char* kReused = "REUSED";

enum class Origin {
  none,      // no file: a parameter, for example
  reused,    // reused work alone: an earlier run measured it, or another workpackage of this run
  measured,  // work of the row's own, at least in part
};

// Of the column's value in this row. An expression has the origin of the values in it.
Origin origin_of(const Benchmark& benchmark, const Record& row, const Column& column);
// Whether it is Origin::reused. Takes no time for a row without reused work.
inline bool is_reused(const Benchmark& benchmark, const Record& row, const Column& column) {
  return !row.reused_values->empty() && origin_of(benchmark, row, column) == Origin::reused;
}

// The values in the column that were measured for too short a time (Record::short_values), and for how
// many seconds. Nothing for a row that is no measurement.
std::map<std::string, double> short_values_of(const Record& row, const Column& column);
std::map<std::string, double> short_values_of(const Record& row,
                                              const std::vector<Column>& columns);

// Record::machine_mark(), and SHORT if one of the columns shows such a value. Empty: nothing is marked.
std::string marks_of(const Record& row, const std::vector<Column>& columns);
std::string marks_of(const Record& row, const Column& column);

// Whether the column shows or is computed from a value that is reused. For tables that may come from
// several benchmarks.
bool names_reused(const Record& row, const Column& column);

}  // namespace tally
