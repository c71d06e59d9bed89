// Compares the rows of two runs, or of one run by a parameter, or the halves of each row.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/results/table/result_table.h"
#include "engine/statistics/comparison.h"
#include "engine/workflow/workflow.h"

namespace tally {

struct CompareOptions {
  std::string by;           // a parameter in which compared rows may differ; empty: none
  double threshold = 0.02;  // a smaller change does not matter
};

// One metric of a row.
struct ComparedRow {
  std::string table, metric;  // the column's title
  // The parameters that tell the rows apart, in the order of RunComparison::parameters. Where `by`
  // is given, its two values are base_label and other_label.
  std::vector<std::string> values;
  std::string base_label, other_label;
  bool lower_is_better = false;
  State base_state = State::done, other_state = State::done;  // Record::state
  const char* why_not = nullptr;            // why one of the rows has no samples; null: both have
  std::string base_mark, other_mark;        // marks_of()
  int base_failed = 0, other_failed = 0;    // repeats that failed, or have no value
  int base_repeats = 0, other_repeats = 0;  // those included
  bool base_reused = false, other_reused = false;  // the metric: Origin::reused
  bool base_measured() const { return base_state == State::done; }
  bool other_measured() const { return other_state == State::done; }
  statistics::Comparison result;
};

struct RunComparison {
  bool one_run = false;  // its rows are compared with one another
  std::vector<std::string> parameters;
  std::vector<ComparedRow> rows;
  std::vector<std::string> notes;  // about rows without a partner
  // Rows of the first run, or of the first value of `by`, are not in the second one, where
  // workpackages failed or have not ended that would have led to rows.
  bool lost_rows = false;
};

// The tables of one result, before and after, in the same order.
struct TablePair {
  std::string name;
  ResultTable base, other;
  // The parameters on which rows are joined, where `base` knows no others. Empty: all free ones.
  std::optional<std::set<std::string>> joined_on;
};

// The columns that can be compared: those with `better`.
bool is_metric(const Column& column);

// Joins the rows of the tables on their free parameters, without `by`. An error if several rows of
// a table have the same parameters, or if no row has a partner. `seed` is for the bootstrap.
Status compare_runs(const Benchmark& benchmark, const std::vector<TablePair>& tables,
                    const CompareOptions& options, uint64_t seed, RunComparison* out);
// Compares each row with the row that has the first value of `by` and otherwise the same
// parameters.
Status compare_by(const Benchmark& benchmark, const std::vector<TablePair>& tables,
                  const CompareOptions& options, uint64_t seed, RunComparison* out);
// Compares the odd repeats of each row with its even ones. Every verdict but `same` and `unclear`
// is wrong.
RunComparison compare_halves(const Benchmark& benchmark, const std::vector<TablePair>& tables,
                             const CompareOptions& options, uint64_t seed);

}  // namespace tally
